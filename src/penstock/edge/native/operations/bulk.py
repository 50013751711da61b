"""Acts by hand on many messages over HTTP: named by their ids, or by what they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.domain.access.api_key import Role
from penstock.domain.datetimes import parse_instant
from penstock.domain.errors import InvalidRequest, MessageNotFound, QueueNotFound, WrongState
from penstock.domain.limits import MAX_INSTANT
from penstock.domain.message.lifecycle import State
from penstock.domain.message.selection import SHOWN, BulkAct, Order, Pick, check_order
from penstock.domain.queue.queue import Queue
from penstock.edge.native import wire_in
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.services.directory import Directory
from penstock.services.message_views import Place
from penstock.services.messages import Messages
from penstock.services.selection import MAX_PICKED, Picking

_AT_ONCE = 200  # so many share a few commits, and others come between


class WhereIn(msgspec.Struct, forbid_unknown_fields=True):
    state: State
    kind: str | None = None
    tag: str | None = None
    group: str | None = None
    entity_id: str | None = None
    sent_from: int | str | None = None
    sent_before: int | str | None = None

    def pick(self) -> Pick:
        return Pick(
            state=shown_state(self.state),
            kind=self.kind,
            tag=self.tag,
            group=self.group,
            entity_id=self.entity_id,
            sent_from=_instant("sent_from", self.sent_from, 0),
            sent_before=_instant("sent_before", self.sent_before, MAX_INSTANT + 1),
        )


class BulkIn(msgspec.Struct, forbid_unknown_fields=True):
    act: BulkAct
    ids: list[str] | None = None
    where: WhereIn | None = None
    reason: str | None = None
    due_at: int | str | None = None
    delay_ms: int | None = None
    is_dry_run: bool = False
    is_running_ok: bool = False


class ChangedOut(msgspec.Struct):
    matched: int
    changed: int
    refused: int
    is_cut: bool


_bulk = msgspec.json.Decoder(BulkIn)


class BulkApi:
    def __init__(self, messages: Messages, picking: Picking, directory: Directory) -> None:
        self._messages = messages
        self._picking = picking
        self._directory = directory

    def routes(self) -> list[Route]:
        return [
            Route(
                method="POST",
                path="/v1/queues/{queue}/messages/bulk",
                handler=self.bulk,
                summary="Act by hand on many messages of a queue, or count them first.",
                name="changeMessages",
                role=Role.OPERATE,
                takes=BulkIn,
                example={"act": "cancel", "where": {"state": "waiting"}, "is_dry_run": True},
                gives=ChangedOut,
                refuses=(QueueNotFound,),
            )
        ]

    async def bulk(self, request: Request, respond: Respond) -> Response:
        wanted = wire_in.decode(_bulk, request.body)
        if (wanted.ids is None) is (wanted.where is None):
            raise InvalidRequest("say which messages: give ids or where, and not both")
        pick = None if wanted.where is None else wanted.where.pick()
        order = Order(
            act=wanted.act,
            reason=wanted.reason,
            due_at=self._due_at(wanted),
            is_running_ok=wanted.is_running_ok,
        )
        check_order(order, None if pick is None else pick.state)
        name = request.params["queue"]
        queue = self._directory.cached(name) or await self._directory.load(name)
        if pick is None:
            assert wanted.ids is not None
            ids, is_cut = await self._picking.of_queue(queue, wanted.ids), False
            absent = len(set(wanted.ids)) - len(ids)
        else:
            ids, is_cut = await self._ids(queue, pick)
            absent = 0
        if wanted.is_dry_run:
            return json_response(ChangedOut(len(ids), 0, absent, is_cut))
        changed = await self._act(queue, ids, order)
        return json_response(ChangedOut(len(ids), changed, len(ids) - changed + absent, is_cut))

    def _due_at(self, wanted: BulkIn) -> int | None:
        said = None if wanted.due_at is None else parse_instant("due_at", wanted.due_at)
        if said is None and wanted.delay_ms is None:
            return None
        return self._messages.due_at(said, wanted.delay_ms)

    async def _ids(self, queue: Queue, pick: Pick) -> tuple[list[str], bool]:
        """What fits now: acts change the order in which they are found, so all are found first."""
        ids: list[str] = []
        after: Place | None = None
        while True:
            page = await self._picking.ids(queue, pick, after=after)
            ids += page.ids
            if page.after is None or len(ids) > MAX_PICKED:
                return ids[:MAX_PICKED], len(ids) > MAX_PICKED
            after = page.after

    async def _act(self, queue: Queue, ids: Sequence[str], order: Order) -> int:
        changed = 0
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            for ticket in [self._picking.act(queue, one, order) for one in some]:
                try:
                    await ticket
                    changed += 1
                except (WrongState, MessageNotFound):
                    pass  # claimed, finished or moved meanwhile: counted as refused
        return changed


def shown_state(state: Any) -> State:
    """One of those that stand in a queue; raises InvalidRequest."""
    if state not in SHOWN:
        raise InvalidRequest("state is ready, waiting, leased or dead")
    return State(state)


def _instant(name: str, value: int | str | None, default: int) -> int:
    return default if value is None else parse_instant(name, value)
