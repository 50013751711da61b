"""Tools that only read.  Their docstrings are what a model reads; answers are kept short."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from pydantic import Field

from penstock.api import overview
from penstock.client.remote.server import Remote
from penstock.domain.message.lifecycle import State

MAX_ITEMS = 100
_PREVIEW = 300  # characters of a body

Queue = Annotated[str, Field(description="The name of a queue.")]
AnyQueue = Annotated[str | None, Field(description="Only this queue; null: all.")]
Limit = Annotated[int, Field(description="The most items to return.", ge=1, le=MAX_ITEMS)]
MessageId = Annotated[str, Field(description="The id of a message or job.")]
Document = dict[str, Any]


class ReadingTools:
    def __init__(self, server: Remote) -> None:
        self._server = server

    def overview(self) -> Document:
        """Counts over all queues, and the queues and routes with problems, the worst first."""
        problems = self._server.channel.request(overview.PROBLEMS)
        return plain(stats=self._server.stats(), **_fields(problems))

    def list_queues(
        self,
        prefix: Annotated[str, Field(description="Only names that begin with this.")] = "",
        limit: Limit = 50,
    ) -> Document:
        """List queues with their settings and the number of messages by state."""
        return plain(queues=self._server.queues.page(prefix=prefix, limit=limit).queues)

    def show_queue(self, queue: Queue) -> Document:
        """Show a queue: settings, counts, whether it is paused or held by a circuit."""
        return plain(queue=self._server.queues.get(queue))

    def browse_messages(
        self,
        queue: Queue,
        state: Literal["ready", "waiting", "leased", "dead"] = "ready",
        kind: Annotated[str | None, Field(description="Only jobs of this kind.")] = None,
        limit: Limit = 20,
    ) -> Document:
        """List messages of a queue, with the beginning of each body. Claims nothing."""
        page = self._server.messages.browse(
            queue, state=State(state), kind=kind, limit=limit, preview=_PREVIEW
        )
        return plain(messages=page.messages)

    def show_message(self, message_id: MessageId) -> Document:
        """Show a message with its body, its attempts and, if it has ended, how."""
        found = self._server.messages.get(message_id)
        past = self._server.history.of(message_id)
        return plain(message=found, endings=past.endings, attempts=past.attempts)

    def search_history(
        self,
        queue: AnyQueue = None,
        kind: Annotated[str | None, Field(description="Only jobs of this kind.")] = None,
        outcome: Literal["done", "dead", "cancelled"] | None = None,
        limit: Limit = 20,
    ) -> Document:
        """List messages that have ended, newest first."""
        ended = None if outcome is None else State(outcome)
        page = self._server.history.page(limit=limit, queue=queue, kind=kind, outcome=ended)
        return plain(endings=page.endings)

    def group_errors(self, queue: AnyQueue = None) -> Document:
        """Group the errors of dead messages by exception and place, the most frequent first."""
        found = self._server.errors.groups(queue=queue)
        return plain(groups=found.groups[:MAX_ITEMS], is_cut=found.is_cut)

    def list_circuits(self) -> Document:
        """List circuit breakers with their states and the queues that they hold."""
        return plain(circuits=self._server.circuits.list())

    def list_fleets(self) -> Document:
        """List fleets of workers: backlog, running and wanted workers, the last decision."""
        return plain(fleets=self._server.scaling.list())

    def list_workers(self, limit: Limit = 50) -> Document:
        """List the workers that are alive."""
        return plain(workers=self._server.workers.page(limit=limit).workers)

    def list_insights(
        self,
        from_day: Annotated[str | None, Field(description="First day, such as 2026-03-01.")] = None,
        to_day: Annotated[str | None, Field(description="Last day.")] = None,
    ) -> Document:
        """Answers in words from recorded history: service levels, outages, costs, advice."""
        return plain(answers=self._server.answers.list(from_day=from_day, to_day=to_day))


def plain(**records: object) -> Document:
    """JSON values of records, with instants as text."""
    document: Document = msgspec.to_builtins(records)
    return document


def _fields(record: msgspec.Struct) -> dict[str, object]:
    return msgspec.structs.asdict(record)
