"""Repeatable claims: the same key returns the same messages under the same leases.

For callers that did not receive the answer.  A claim can be repeated while none of its messages has
changed; an act on one of them shows that the answer arrived.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from penstock.domain.errors import ClaimNotRepeatable
from penstock.domain.limits import MINUTE
from penstock.domain.message.lease import is_overdue
from penstock.domain.message.lifecycle import Message, State

KEPT_MS = 5 * MINUTE  # from the first claim with that key
MAX_KEY_CHARS = 128


class ClaimResult(msgspec.Struct, frozen=True, array_like=True):
    """What a claim returned, in its order."""

    leases: tuple[tuple[int, int], ...]  # message_no, lease_no
    leased_at: int
    due_at: int

    @classmethod
    def of(cls, messages: Sequence[Message]) -> ClaimResult:
        leases = tuple((m.message_no, m.lease_no) for m in messages)
        return cls(leases, messages[0].leased_at or 0, messages[0].due_at)


def repeat(
    given: ClaimResult, found: Mapping[int, Message], *, now: int, lease_ms: int
) -> list[Message]:
    """The same messages once more, with renewed leases; or raise ClaimNotRepeatable."""
    messages = [found.get(message_no) for message_no, _ in given.leases]
    again: list[Message] = []
    for (_, lease_no), message in zip(given.leases, messages, strict=True):
        if message is None or not _is_untouched(message, lease_no, given, now=now):
            raise ClaimNotRepeatable("a message of this claim has changed since")
        again.append(replace(message, due_at=now + lease_ms))
    return again


def _is_untouched(message: Message, lease_no: int, given: ClaimResult, *, now: int) -> bool:
    is_held = message.state is State.LEASED and message.lease_no == lease_no
    is_as_given = message.leased_at == given.leased_at and message.due_at == given.due_at
    is_quiet = message.started_at is None and message.progress is None
    # Past the deadline, the holder's first extension would time the message out.
    is_in_time = now < given.due_at and not is_overdue(message, now=now)
    return is_held and is_as_given and is_quiet and is_in_time
