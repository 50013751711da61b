"""Look up, browse and change messages, as an operator does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.api import manual_acts, messages
from penstock.api.manual_acts import Buried, End, Reason, Reschedule
from penstock.api.messages import Acted, Browse, Page
from penstock.api.operation import Instant
from penstock.domain.access.api_key import Role, allow
from penstock.domain.datetimes import parse_instant, read_instant
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import MAX_INSTANT
from penstock.domain.message.history import Ending
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.message.selection import SHOWN, Pick
from penstock.operations.call import Call, Handlers
from penstock.operations.cursor import from_cursor, to_cursor
from penstock.ports.unit_of_work import Steps, Work
from penstock.services.messages import MessageService, MessageView
from penstock.services.selection import SelectionService


class MessageOperations:
    def __init__(self, service: MessageService, selection: SelectionService) -> None:
        self._messages = service
        self._selection = selection

    def handlers(self) -> Handlers:
        return {
            messages.BROWSE: self.browse,
            messages.GET: self.get,
            manual_acts.RESCHEDULE: self.reschedule,
            manual_acts.COMPLETE: self.complete,
            manual_acts.CANCEL: self.cancel,
            manual_acts.BURY: self.bury,
            manual_acts.REDRIVE: self.redrive,
        }

    def browse(self, call: Call[None, Browse]) -> Work[Page]:
        wanted = call.query
        pick = Pick(
            state=browsable_state(wanted.state),
            kind=wanted.kind,
            tag=wanted.tag,
            group=wanted.group,
            entity_id=wanted.entity_id,
            sent_from=read_instant("sent_from", wanted.sent_from, default=0),
            sent_before=read_instant("sent_before", wanted.sent_before, default=MAX_INSTANT + 1),
        )
        after: Any = from_cursor(wanted.cursor, 4)
        found = self._selection.page(call.path["queue"], pick, limit=wanted.limit, after=after)
        return found.map(
            lambda page: Page(
                [record_of(view, call.instant, call.json_value) for view in page.views],
                None if page.after is None else to_cursor(*page.after),
            )
        )

    def get(self, call: Call[None, None]) -> Steps[messages.Message]:
        view = yield from self._messages.get(call.path["id"])
        allow(call.caller, Role.READ, view.queue)
        return record_of(view, call.instant, call.json_value)

    def reschedule(self, call: Call[Reschedule, None]) -> Steps[Acted]:
        due_at, delay_ms = call.body.due_at, call.body.delay_ms
        instant = self._messages.due_at(
            None if due_at is None else parse_instant("due_at", due_at), delay_ms
        )
        yield from self._check(call)
        changed = yield from self._messages.reschedule(call.path["id"], due_at=instant)
        return acted_of(changed, call.instant)

    def complete(self, call: Call[Reason, None]) -> Steps[Acted]:
        yield from self._check(call)
        done = yield from self._messages.complete(call.path["id"], reason=call.body.reason)
        return acted_of(done, call.instant)

    def cancel(self, call: Call[End, None]) -> Steps[Acted]:
        yield from self._check(call)
        cancelled = yield from self._messages.cancel(
            call.path["id"], reason=call.body.reason, is_running_ok=call.body.is_running_ok
        )
        return acted_of(cancelled, call.instant)

    def bury(self, call: Call[End, None]) -> Steps[Buried]:
        yield from self._check(call)
        yield from self._messages.bury(
            call.path["id"], reason=call.body.reason, is_running_ok=call.body.is_running_ok
        )
        # In a dead-letter queue its state is ready, but the caller sees it as dead.
        return Buried(call.path["id"], State.DEAD)

    def redrive(self, call: Call[None, None]) -> Steps[Acted]:
        yield from self._check(call)
        redriven = yield from self._messages.redrive(call.path["id"])
        return acted_of(redriven, call.instant)

    def _check(self, call: Call[Any, None]) -> Steps[None]:
        """Raise Forbidden unless the caller has the role for the message's queue."""
        if "*" not in call.caller.queues:
            view = yield from self._messages.get(call.path["id"])
            allow(call.caller, Role.OPERATE, view.queue)


def browsable_state(state: str) -> State:
    """Raise InvalidRequest for states of finished messages."""
    if state not in SHOWN:
        raise InvalidRequest("state is ready, waiting, leased or dead")
    return State(state)


def record_of(
    view: MessageView, instant: Callable[[int], Instant], json_value: Callable[[str], Any]
) -> messages.Message:
    message, content = view.message, view.content
    if isinstance(message, Ending):
        return messages.Message.of_ending(message, content, instant, json_value)
    return messages.Message.of(
        view.queue, message, content, instant, json_value, dead_from=view.dead_from
    )


def acted_of(message: Message, instant: Callable[[int], Instant]) -> Acted:
    return Acted(message.id, message.state, instant(message.due_at))
