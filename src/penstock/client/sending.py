"""Batches of drafts to send, and their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from penstock.api.messages import Sent
from penstock.client.jobs.options import JobOptions, ResolvedOptions
from penstock.domain.errors import InvalidRequest, PenstockError
from penstock.domain.message.draft import Draft


def draft_by_kind(
    kind: str, arguments: Mapping[str, object], options: JobOptions
) -> tuple[ResolvedOptions, Draft]:
    """A draft for a job whose function is not known here.  Raises InvalidRequest if not JSON."""
    resolved = ResolvedOptions().merged(options)
    try:
        body = msgspec.json.encode(arguments).decode()
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRequest(f"job {kind!r}: {error}") from None
    return resolved, msgspec.structs.replace(resolved.draft, kind=kind, body=body)


def with_trace(drafts: Sequence[Draft], trace: str | None) -> list[Draft]:
    """Add this trace context to drafts that have none of their own."""
    if trace is None:
        return list(drafts)
    return [d if d.trace else msgspec.structs.replace(d, trace=trace) for d in drafts]


def batches(drafts: Sequence[Draft], *, most: int) -> list[Sequence[Draft]]:
    return [drafts[i : i + most] for i in range(0, len(drafts), most)]


def check_sent(answers: Sequence[Sent | PenstockError]) -> list[Sent]:
    """Raise the first rejection, with a note on how many jobs were enqueued."""
    sent = [answer for answer in answers if isinstance(answer, Sent)]
    for answer in answers:
        if isinstance(answer, PenstockError):
            if len(answers) > 1:
                answer.add_note(f"{len(sent)} of {len(answers)} jobs were enqueued")
            raise answer
    return sent
