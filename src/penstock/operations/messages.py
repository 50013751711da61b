"""Look up, browse and change messages, one by id or many at once, as an operator does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from penstock.api import browsing, manual_acts, messages
from penstock.api.browsing import Browse, Page
from penstock.api.manual_acts import Bulk, Buried, Changed, End, Reason, Reschedule, Where
from penstock.api.messages import Acted
from penstock.api.operation import ToInstant
from penstock.domain.access.api_key import Role, allow, is_limited
from penstock.domain.chunks import chunks
from penstock.domain.datetimes import parse_instant, read_instant
from penstock.domain.errors import InvalidRequest, MessageNotFound, PenstockError, WrongState
from penstock.domain.limits import MAX_INSTANT
from penstock.domain.message.error_line import error_line
from penstock.domain.message.history import Ending
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.message.selection import BROWSABLE, BulkRequest, Selection, check_request
from penstock.operations.call import Call, Handlers
from penstock.operations.paging import from_cursor, to_cursor
from penstock.ports.unit_of_work import ParallelWork, Steps, Work
from penstock.services.bulk.selection import MAX_SELECTED, SelectionService
from penstock.services.message_views import Place
from penstock.services.messages import MessageService, MessageView


class MessageOperations:
    def __init__(self, service: MessageService, selection: SelectionService) -> None:
        self._messages = service
        self._selection = selection

    def handlers(self) -> Handlers:
        return {
            browsing.BROWSE: self.browse,
            messages.GET: self.get,
            manual_acts.RESCHEDULE: self.reschedule,
            manual_acts.COMPLETE: self.complete,
            manual_acts.CANCEL: self.cancel,
            manual_acts.BURY: self.bury,
            manual_acts.REDRIVE: self.redrive,
        }

    def browse(self, call: Call[None, Browse]) -> Work[Page]:
        after: Any = from_cursor(call.query.cursor, 4)
        found = self._selection.page(
            call.path["queue"], _selection_of(call.query), limit=call.query.limit, after=after
        )
        return found.map(
            lambda page: Page(
                [listed(view, call, call.query.preview) for view in page.views],
                None if page.after is None else to_cursor(*page.after),
            )
        )

    def get(self, call: Call[None, None]) -> Steps[messages.Message]:
        view = yield from allowed_message(self._messages, call, Role.READ)
        return record_of(view, call.instant, call.json_value)

    def reschedule(self, call: Call[Reschedule, None]) -> Steps[Acted]:
        due_at, delay_ms = call.body.due_at, call.body.delay_ms
        instant = self._messages.due_at(
            None if due_at is None else parse_instant("due_at", due_at), delay_ms
        )
        yield from check_operator(self._messages, call)
        changed = yield from self._messages.reschedule(call.path["id"], due_at=instant)
        return acted_of(changed, call.instant)

    def complete(self, call: Call[Reason, None]) -> Steps[Acted]:
        yield from check_operator(self._messages, call)
        done = yield from self._messages.complete(call.path["id"], reason=call.body.reason)
        return acted_of(done, call.instant)

    def cancel(self, call: Call[End, None]) -> Steps[Acted]:
        yield from check_operator(self._messages, call)
        cancelled = yield from self._messages.cancel(
            call.path["id"], reason=call.body.reason, is_running_ok=call.body.is_running_ok
        )
        return acted_of(cancelled, call.instant)

    def bury(self, call: Call[End, None]) -> Steps[Buried]:
        yield from check_operator(self._messages, call)
        yield from self._messages.bury(
            call.path["id"], reason=call.body.reason, is_running_ok=call.body.is_running_ok
        )
        # In a dead-letter queue its state is ready, but the caller sees it as dead.
        return Buried(call.path["id"], State.DEAD)

    def redrive(self, call: Call[None, None]) -> Steps[Acted]:
        yield from check_operator(self._messages, call)
        redriven = yield from self._messages.redrive(call.path["id"])
        return acted_of(redriven, call.instant)


def allowed_message(
    messages: MessageService, call: Call[Any, None], role: Role
) -> Steps[MessageView]:
    """The message; raises Forbidden unless the caller has the role for its queue."""
    view = yield from messages.get(call.path["id"])
    allow(call.caller, role, view.queue)
    return view


def check_operator(messages: MessageService, call: Call[Any, None]) -> Steps[None]:
    """Raise Forbidden unless the caller may operate the queue of the message."""
    if is_limited(call.caller):
        yield from allowed_message(messages, call, Role.OPERATE)


def record_of(
    view: MessageView, instant: ToInstant, json_value: Callable[[str], Any]
) -> messages.Message:
    message, content = view.message, view.content
    if isinstance(message, Ending):
        record = messages.Message.of_ending(message, content, instant, json_value, view.result)
    else:
        record = messages.Message.of(
            view.queue, message, content, instant, json_value, dead_from=view.dead_from
        )
    if record.last_error is not None:
        record = replace(record, error_line=error_line(record.last_error))
    if view.flow_id is None:
        return record
    record = replace(record, flow_id=view.flow_id, waits_for=view.waits_for)
    return replace(record, due_at=None) if view.is_unsent else record


def listed(view: MessageView, call: Call[Any, Any], preview: int | None) -> messages.Message:
    """The message in a list, with its content or the beginning of its body."""
    if preview is None or view.content is None:
        return record_of(view, call.instant, call.json_value)
    record = record_of(replace(view, content=None), call.instant, call.json_value)
    return replace(record, preview=view.content.body[:preview], last_error=None)


def acted_of(message: Message, instant: ToInstant) -> Acted:
    return Acted(message.id, message.state, instant(message.due_at))


_AT_ONCE = 200  # messages per transaction; other writes run in between


class BulkOperations:
    def __init__(self, service: MessageService, selections: SelectionService) -> None:
        self._messages = service
        self._selections = selections

    def handlers(self) -> Handlers:
        return {manual_acts.BULK: self.change}

    def change(self, call: Call[Bulk, None]) -> Steps[Changed]:
        wanted, queue = call.body, call.path["queue"]
        if (wanted.ids is None) is (wanted.where is None):
            raise InvalidRequest("give ids or where, not both")
        selection = None if wanted.where is None else _selection_of(wanted.where)
        request = BulkRequest(
            act=wanted.act,
            reason=wanted.reason,
            due_at=self._due_at(wanted),
            is_running_ok=wanted.is_running_ok,
        )
        check_request(request, None if selection is None else selection.state)
        absent, is_cut = 0, False
        if selection is not None:
            ids, is_cut = yield from self._ids(queue, selection)
        else:
            assert wanted.ids is not None
            ids = yield from self._selections.of_queue(queue, wanted.ids)
            absent = len(set(wanted.ids)) - len(ids)
        if wanted.is_dry_run:
            return Changed(len(ids), 0, absent, is_cut)
        changed = yield from act_on_many(self._selections, ids, request, queue=queue)
        return Changed(len(ids), changed, len(ids) - changed + absent, is_cut)

    def _due_at(self, wanted: Bulk) -> int | None:
        if wanted.due_at is None and wanted.delay_ms is None:
            return None
        due_at = None if wanted.due_at is None else parse_instant("due_at", wanted.due_at)
        return self._messages.due_at(due_at, wanted.delay_ms)

    def _ids(self, queue: str, selection: Selection) -> Steps[tuple[list[str], bool]]:
        """Collect the ids of all matches first, because an act changes the order of the pages."""
        ids: list[str] = []
        after: Place | None = None
        while True:
            page = yield from self._selections.ids(queue, selection, after=after)
            ids += page.ids
            if page.after is None or len(ids) > MAX_SELECTED:
                return ids[:MAX_SELECTED], len(ids) > MAX_SELECTED
            after = page.after


def act_on_many(
    selections: SelectionService,
    ids: Sequence[str],
    request: BulkRequest,
    *,
    queue: str | None = None,
) -> Steps[int]:
    """How many were changed; `queue`: only messages that are in that queue."""
    changed = 0
    for some in chunks(ids, _AT_ONCE):
        answers = yield from ParallelWork(
            [selections.act(message_id, request, queue=queue) for message_id in some]
        )
        for answer in answers:
            if isinstance(answer, PenstockError):
                # Claimed, finished or moved in the meantime: counts as refused.
                if not isinstance(answer, (WrongState, MessageNotFound)):
                    raise answer
            else:
                changed += 1
    return changed


def _selection_of(where: Where | Browse) -> Selection:
    """Raises InvalidRequest, also for states of finished messages."""
    if where.state not in BROWSABLE:
        raise InvalidRequest("state is ready, waiting, leased or dead")
    return Selection(
        state=State(where.state),
        kind=where.kind,
        tag=where.tag,
        group=where.group,
        entity_id=where.entity_id,
        sent_from=read_instant("sent_from", where.sent_from, default=0),
        sent_before=read_instant("sent_before", where.sent_before, default=MAX_INSTANT + 1),
    )
