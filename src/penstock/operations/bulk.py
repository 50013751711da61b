"""Operators' acts on many messages, selected by ids or by fields."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.api import manual_acts
from penstock.api.manual_acts import Bulk, Changed, Where
from penstock.domain.datetimes import parse_instant, read_instant
from penstock.domain.errors import InvalidRequest, MessageNotFound, PenstockError, WrongState
from penstock.domain.limits import MAX_INSTANT
from penstock.domain.message.selection import BulkOrder, Pick, check_order
from penstock.operations.call import Call, Handlers
from penstock.operations.messages import browsable_state
from penstock.ports.unit_of_work import Steps, Together
from penstock.services.message_views import Place
from penstock.services.messages import MessageService
from penstock.services.selection import MAX_PICKED, SelectionService

_AT_ONCE = 200  # messages per transaction; other writes run in between


class BulkOperations:
    def __init__(self, service: MessageService, selection: SelectionService) -> None:
        self._messages = service
        self._selection = selection

    def handlers(self) -> Handlers:
        return {manual_acts.BULK: self.change}

    def change(self, call: Call[Bulk, None]) -> Steps[Changed]:
        wanted, queue = call.body, call.path["queue"]
        if (wanted.ids is None) is (wanted.where is None):
            raise InvalidRequest("give ids or where, not both")
        pick = None if wanted.where is None else _pick(wanted.where)
        order = BulkOrder(
            act=wanted.act,
            reason=wanted.reason,
            due_at=self._due_at(wanted),
            is_running_ok=wanted.is_running_ok,
        )
        check_order(order, None if pick is None else pick.state)
        absent, is_cut = 0, False
        if pick is not None:
            ids, is_cut = yield from self._ids(queue, pick)
        else:
            assert wanted.ids is not None
            ids = yield from self._selection.of_queue(queue, wanted.ids)
            absent = len(set(wanted.ids)) - len(ids)
        if wanted.is_dry_run:
            return Changed(len(ids), 0, absent, is_cut)
        changed = yield from self._act(queue, ids, order)
        return Changed(len(ids), changed, len(ids) - changed + absent, is_cut)

    def _due_at(self, wanted: Bulk) -> int | None:
        if wanted.due_at is None and wanted.delay_ms is None:
            return None
        due_at = None if wanted.due_at is None else parse_instant("due_at", wanted.due_at)
        return self._messages.due_at(due_at, wanted.delay_ms)

    def _ids(self, queue: str, pick: Pick) -> Steps[tuple[list[str], bool]]:
        """Collect the ids of all matches first, because an act changes the order of the pages."""
        ids: list[str] = []
        after: Place | None = None
        while True:
            page = yield from self._selection.ids(queue, pick, after=after)
            ids += page.ids
            if page.after is None or len(ids) > MAX_PICKED:
                return ids[:MAX_PICKED], len(ids) > MAX_PICKED
            after = page.after

    def _act(self, queue: str, ids: Sequence[str], order: BulkOrder) -> Steps[int]:
        changed = 0
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            answers = yield from Together(
                [self._selection.act(message_id, order, queue=queue) for message_id in some]
            )
            for answer in answers:
                if isinstance(answer, PenstockError):
                    # Claimed, finished or moved in the meantime: counts as refused.
                    if not isinstance(answer, (WrongState, MessageNotFound)):
                        raise answer
                else:
                    changed += 1
        return changed


def _pick(where: Where) -> Pick:
    return Pick(
        state=browsable_state(where.state),
        kind=where.kind,
        tag=where.tag,
        group=where.group,
        entity_id=where.entity_id,
        sent_from=read_instant("sent_from", where.sent_from, default=0),
        sent_before=read_instant("sent_before", where.sent_before, default=MAX_INSTANT + 1),
    )
