"""Jobs as a store in the same process has them, in the same records that a server sends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from penstock.api.queues import Totals
from penstock.client.remote.answers import Message
from penstock.domain.datetimes import moment_of
from penstock.domain.message.deadline import deadline
from penstock.domain.message.history import Ending
from penstock.domain.message.lifecycle import State
from penstock.domain.queue import counts
from penstock.services.message_views import MessageView

# Named alike in a store's record; the others are said below.
_DERIVED = {"queue", "state", "body", "tags", "due_at", "progress", "dead_from"}
_ALIKE = [name for name in Message.__struct_fields__ if name not in _DERIVED]


class JobPage(msgspec.Struct, frozen=True):
    """Some jobs; `next` is the cursor of the page behind them, None after the last."""

    jobs: list[Message]
    next: str | None = None

    def __iter__(self) -> Iterator[Message]:
        return iter(self.jobs)

    def __len__(self) -> int:
        return len(self.jobs)


class JobCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs that are there now, by state; `totals` counts all there ever were."""

    waiting: int = 0
    ready: int = 0
    leased: int = 0
    dead: int = 0
    totals: Totals = Totals.of(counts.Counts())


def record_of(view: MessageView) -> Message:
    message = view.message
    fields: dict[str, Any] = {
        name: _value(name, getattr(message, name)) for name in _ALIKE if hasattr(message, name)
    }
    fields["tags"] = tuple(tag for tag in (message.tag1, message.tag2) if tag is not None)
    if isinstance(message, Ending):
        fields["state"] = message.outcome
    else:
        fields |= {"state": message.state, "dead_from": view.dead_from}
        until = "leased_until" if message.state is State.LEASED else "due_at"
        fields[until] = moment_of(message.due_at)
        end = deadline(message) if message.state is State.LEASED else None
        fields["deadline_at"] = None if end is None else moment_of(end)
        if message.progress is not None:
            fields["progress"] = msgspec.json.decode(message.progress)
    if view.content is not None:
        fields["body"] = msgspec.json.decode(view.content.body)
        fields["attributes"] = view.content.attributes or {}
        fields["trace"] = view.content.trace
    return Message(queue=view.queue, **fields)


def counts_of(found: counts.Counts) -> JobCounts:
    return JobCounts(
        waiting=found.waiting,
        ready=found.ready,
        leased=found.leased,
        dead=found.dead,
        totals=Totals.of(found),
    )


def _value(name: str, value: Any) -> Any:
    return moment_of(value) if name.endswith("_at") and value is not None else value
