"""Jobs as tests see them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from penstock.client.jobs.job import Job
from penstock.domain.datetimes import moment_of
from penstock.domain.message.history import Ending, HistoryFilter
from penstock.domain.message.lifecycle import State
from penstock.services.messages import MessageView
from penstock.wiring.broker import Broker

_PAGE = 1_000
_NOT_ENDED = (State.READY, State.WAITING, State.LEASED, State.DEAD)


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    queue: str
    kind: str | None
    arguments: Any  # as stored: JSON values
    state: State
    attempts: int
    failures: int
    priority: int
    due_at: datetime
    group: str | None = None
    tags: tuple[str, ...] = ()
    entity_id: str | None = None
    last_error: str | None = None
    reason: str | None = None


class JobQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The fields that a test looks for; None matches anything."""

    kind: str | None = None
    arguments: Mapping[str, object] | None = None
    queue: str | None = None
    group: str | None = None
    priority: int | None = None
    due_at: datetime | None = None
    tag: str | None = None
    entity_id: str | None = None

    def fits(self, job: JobView) -> bool:
        for name in ("kind", "queue", "group", "priority", "due_at", "entity_id"):
            wanted = getattr(self, name)
            if wanted is not None and getattr(job, name) != wanted:
                return False
        if self.tag is not None and self.tag not in job.tags:
            return False
        return self.arguments is None or _includes(job.arguments, self.arguments)

    def __str__(self) -> str:
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        given = [f"{name}={value!r}" for name, value in fields.items() if value is not None]
        return ", ".join(given) or "anything"


def kind_of(job: Job[..., Any] | str | None) -> str | None:
    return job.kind if isinstance(job, Job) else job


def live(broker: Broker) -> list[JobView]:
    """Jobs of all queues, in the order they were enqueued, including dead ones."""
    found: list[MessageView] = []
    for view in broker.queues.page(prefix="", after="", limit=_PAGE).result():
        for state in _NOT_ENDED:
            found += _browse(broker, view.queue.name, state)
    return [_job(one) for one in sorted(found, key=lambda view: view.message.message_no)]


def _browse(broker: Broker, queue: str, state: State) -> list[MessageView]:
    page = broker.messages.browse(queue, state, limit=_PAGE, after=None).result()
    found = page.views
    while page.after is not None and len(found) < _PAGE:
        page = broker.messages.browse(queue, state, limit=_PAGE, after=page.after).result()
        found += page.views
    return found


def ended(broker: Broker) -> list[JobView]:
    """Ended jobs, oldest first."""
    endings = broker.history.history(HistoryFilter(limit=_PAGE)).result()
    return [_job(broker.messages.get(ending.id).result()) for ending in reversed(endings)]


def _job(view: MessageView) -> JobView:
    message = view.message
    tags = (message.tag1, message.tag2)
    body = None if view.content is None else view.content.body
    return JobView(
        id=message.id,
        queue=view.queue,
        kind=message.kind,
        arguments=None if body is None else msgspec.json.decode(body),
        state=message.outcome if isinstance(message, Ending) else message.state,
        attempts=message.attempts,
        failures=message.failures,
        priority=message.priority,
        due_at=moment_of(message.due_at),
        group=message.group,
        tags=tuple(tag for tag in tags if tag is not None),
        entity_id=message.entity_id,
        last_error=message.last_error,
        reason=message.reason,
    )


def _includes(found: object, wanted: Mapping[str, object]) -> bool:
    """Whether all of these are present, compared as the stored JSON."""
    if not isinstance(found, dict):
        return False
    asked = msgspec.json.decode(msgspec.json.encode(wanted))
    return all(name in found and found[name] == value for name, value in asked.items())
