"""A member becomes a message: at once, or when its parents have ended."""

from __future__ import annotations

import dataclasses

import msgspec
from msgspec.structs import replace

from penstock.domain.errors import PenstockError, TooLarge
from penstock.domain.flow.inputs import Inputs, fill
from penstock.domain.flow.member import INPUTS_TOO_LARGE, INPUTS_UNFIT
from penstock.domain.limits import MIB, Limits
from penstock.domain.message.draft import Draft, NewMessage, send
from penstock.domain.queue.queue import Queue


class StoredDraft(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a blocked member will be.  Its plan was checked; only inputs can make it too large."""

    draft: Draft
    max_body_bytes: int  # of the server that planned it
    inputs: Inputs = {}


_stored = msgspec.json.Decoder(StoredDraft)
_CHECKED = Limits(max_attributes=10_000, max_attribute_bytes=MIB, max_label_chars=1_024)


def to_text(stored: StoredDraft) -> str:
    return msgspec.json.encode(stored).decode()


def from_text(text: str) -> StoredDraft:
    return _stored.decode(text)


def release(
    stored: StoredDraft,
    queue: Queue,
    *,
    now: int,
    message_id: str,
    flow_no: int,
    results: dict[int, str | None],
) -> NewMessage:
    """The message as it is sent now: delays and retention count from here.

    Raises InvalidRequest or TooLarge.  Dedup keys do not apply: a member runs once anyway.
    """
    draft = stored.draft
    if stored.inputs:
        draft = replace(draft, body=fill(draft.body, stored.inputs, results))
    limits = dataclasses.replace(_CHECKED, max_body_bytes=stored.max_body_bytes)
    new = send(draft, queue, now=now, message_id=message_id, limits=limits)
    message = replace(new.message, flow_no=flow_no, dedup_key=None, dedup_until=None)
    return replace(new, message=message)


def reason_of(error: PenstockError) -> str:
    """Why a member could not be released."""
    return INPUTS_TOO_LARGE if isinstance(error, TooLarge) else INPUTS_UNFIT
