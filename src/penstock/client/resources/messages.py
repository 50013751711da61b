"""Messages, live and finished, as an operator sees and changes them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import TypedDict, Unpack

from penstock.api import browsing, history, manual_acts, messages
from penstock.api.browsing import Browse, Page
from penstock.api.history import Ending, MessageHistory, Result, SearchHistory, WaitForEnd
from penstock.api.jobs.steps import MessageSteps
from penstock.api.manual_acts import Bulk, Buried, Changed, End, Reason, Reschedule, Where
from penstock.api.messages import Acted, Message
from penstock.client.channel import run
from penstock.client.resources.resource import ResourceClient, items_of
from penstock.client.resources.steps import steps_of
from penstock.domain.message.lifecycle import State
from penstock.domain.message.selection import BulkAct


class BulkOptions(TypedDict, total=False):
    """Which messages, by `ids` or `where`, and how."""

    ids: list[str] | None
    where: Where | None
    reason: str | None
    due_at: datetime | None
    delay_ms: int | None
    is_dry_run: bool
    is_running_ok: bool


class MessageFilter(TypedDict, total=False):
    kind: str | None
    tag: str | None
    group: str | None
    entity_id: str | None
    sent_from: datetime | None  # inclusive
    sent_before: datetime | None  # exclusive
    preview: int | None  # this many characters of each body, in place of the body


class MessageClient(ResourceClient):
    def get(self, message_id: str) -> Message:
        """Return a message, live or from history; raises MessageNotFound."""
        return self._request(messages.GET, id=message_id)

    def result(self, message_id: str, *, wait_ms: int = 0) -> Result:
        """Return what became of a message; waits up to `wait_ms` for its end."""
        return self._request(history.RESULT, query=WaitForEnd(wait_ms=wait_ms), id=message_id)

    def steps(self, message_id: str) -> MessageSteps:
        """Return its durable steps, and the signals that it waits for."""
        return run(self._channel, steps_of(message_id))

    def browse(
        self,
        queue: str,
        *,
        state: State = State.READY,
        limit: int = 100,
        cursor: str | None = None,
        **wanted: Unpack[MessageFilter],
    ) -> Page:
        """Return a page of a queue's messages; changes nothing.

        With a filter, a page may be short, or even empty, and still have a next one.
        """
        query = Browse(state=state, limit=limit, cursor=cursor, **wanted)
        return self._request(browsing.BROWSE, query=query, queue=queue)

    def change_many(
        self,
        queue: str,
        act: BulkAct,
        **options: Unpack[BulkOptions],
    ) -> Changed:
        """Act on all matching messages, or only count them."""
        return self._request(manual_acts.BULK, Bulk(act, **options), queue=queue)

    def complete(self, message_id: str, *, reason: str | None = None) -> Acted:
        return self._request(manual_acts.COMPLETE, Reason(reason), id=message_id)

    def cancel(
        self, message_id: str, *, reason: str | None = None, is_running_ok: bool = False
    ) -> Acted:
        """Cancel a message; `is_running_ok`: also a leased one, whose holder is fenced."""
        wanted = End(reason=reason, is_running_ok=is_running_ok)
        return self._request(manual_acts.CANCEL, wanted, id=message_id)

    def bury(
        self, message_id: str, *, reason: str | None = None, is_running_ok: bool = False
    ) -> Buried:
        wanted = End(reason=reason, is_running_ok=is_running_ok)
        return self._request(manual_acts.BURY, wanted, id=message_id)

    def redrive(self, message_id: str) -> Acted:
        return self._request(manual_acts.REDRIVE, id=message_id)

    def reschedule(
        self, message_id: str, due_at: datetime | None = None, *, delay_ms: int | None = None
    ) -> Acted:
        """Change when an unclaimed message is due: at an instant, or after a delay from now."""
        wanted = Reschedule(due_at=due_at, delay_ms=delay_ms)
        return self._request(manual_acts.RESCHEDULE, wanted, id=message_id)


class EndingFilter(TypedDict, total=False):
    """`from_at <= finished_at < to_at`"""

    queue: str | None
    kind: str | None
    tag: str | None
    entity_id: str | None
    outcome: State | None
    from_at: datetime | None
    to_at: datetime | None


class HistoryClient(ResourceClient):
    def search(self, *, page_size: int = 100, **wanted: Unpack[EndingFilter]) -> Iterator[Ending]:
        """Search finished messages, newest first; fetches further pages as the caller iterates."""
        return items_of(
            lambda cursor: self.page(limit=page_size, cursor=cursor, **wanted),
            lambda page: page.endings,
        )

    def page(
        self, *, limit: int = 100, cursor: str | None = None, **wanted: Unpack[EndingFilter]
    ) -> history.History:
        begin, end = _text(wanted.pop("from_at", None)), _text(wanted.pop("to_at", None))
        query = SearchHistory(from_=begin, to=end, limit=limit, cursor=cursor, **wanted)  # type: ignore[misc]
        return self._request(history.SEARCH, query=query)

    def of(self, message_id: str) -> MessageHistory:
        """The endings and the unfinished attempts of one message."""
        return self._request(history.GET, id=message_id)


def _text(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="milliseconds")
