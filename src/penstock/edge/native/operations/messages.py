"""Messages over HTTP: look at them, and intervene by hand."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.api import history
from penstock.domain.access import api_key as access
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.datetimes import parse_instant, read_instant
from penstock.domain.errors import WrongState
from penstock.domain.limits import MAX_INSTANT
from penstock.domain.message.history import Ending
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.message.selection import Pick
from penstock.edge.instants import to_text
from penstock.edge.native import wire, wire_in
from penstock.edge.native.operations.bulk import shown_state
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.operations.cursor import from_cursor, read_limit, to_cursor
from penstock.services.directory import Directory
from penstock.services.messages import Messages, MessageView
from penstock.services.selection import Picking

_reason = msgspec.json.Decoder(wire_in.ReasonIn)
_ending = msgspec.json.Decoder(wire_in.EndIn)
_reschedule = msgspec.json.Decoder(wire_in.RescheduleIn)
_LABELS = ("kind", "tag", "group", "entity_id")
_BROWSE = ("state", *_LABELS, "sent_from", "sent_before", "limit", "cursor")

_OF_AN_ENDING = (
    "finished_at",
    "failures",
    "size",
    "reason",
    "kind",
    "entity_id",
    "tags",
    "group",
    "priority",
    "first_leased_at",
    "leased_at",
    "leased_by",
    "last_error",
    "route",
    "crashes",
)


class MessageApi:
    def __init__(self, messages: Messages, picking: Picking, directory: Directory) -> None:
        self._messages = messages
        self._picking = picking
        self._directory = directory

    def routes(self) -> list[Route]:
        one = "/v1/messages/{id}"

        def route(method: str, path: str, handler: Any, summary: str, **more: Any) -> Route:
            return Route(method=method, path=path, handler=handler, summary=summary, **more)

        return [
            route(
                "GET",
                "/v1/queues/{queue}/messages",
                self.browse,
                "Look at messages in one state (ready, waiting, leased, dead); changes nothing.",
                name="browseMessages",
                role=Role.READ,
                gives=wire.PageOut,
                query=_BROWSE,
            ),
            route(
                "GET",
                one,
                self.get,
                "One message, live or from history.",
                name="getMessage",
                scope=Scope.NAMED,
                role=Role.READ,
                gives=wire.MessageOut,
            ),
            route(
                "PATCH",
                one,
                self.reschedule,
                "Give a message in line another due date.",
                name="rescheduleMessage",
                scope=Scope.NAMED,
                role=Role.OPERATE,
                takes=wire_in.RescheduleIn,
                example={"due_at": "2031-12-24T18:00:00Z"},
                gives=wire.ActedOut,
                refuses=(WrongState,),
            ),
            route(
                "POST",
                f"{one}/complete",
                self.complete,
                "It is done, an operator says; only while nobody holds it.",
                name="completeByHand",
                scope=Scope.NAMED,
                role=Role.OPERATE,
                takes=wire_in.ReasonIn,
                example={"reason": "done by telephone"},
                gives=wire.ActedOut,
                refuses=(WrongState,),
            ),
            route(
                "POST",
                f"{one}/cancel",
                self.cancel,
                "Cancel it; one that is leased only with is_running_ok.",
                name="cancelByHand",
                scope=Scope.NAMED,
                role=Role.OPERATE,
                takes=wire_in.EndIn,
                example={"reason": "the order was withdrawn"},
                gives=wire.ActedOut,
                refuses=(WrongState,),
            ),
            route(
                "POST",
                f"{one}/bury",
                self.bury,
                "Put it among the dead ones; one that is leased only with is_running_ok.",
                name="buryByHand",
                scope=Scope.NAMED,
                role=Role.OPERATE,
                takes=wire_in.EndIn,
                example={"reason": "no such address"},
                gives=wire.BuriedOut,
                refuses=(WrongState,),
            ),
            route(
                "POST",
                f"{one}/redrive",
                self.redrive,
                "Bring a dead message back to the queue it died in.",
                name="redriveMessage",
                scope=Scope.NAMED,
                role=Role.OPERATE,
                gives=wire.ActedOut,
                refuses=(WrongState,),
            ),
        ]

    async def browse(self, request: Request, respond: Respond) -> Response:
        query = request.query(*_BROWSE)
        pick = Pick(
            state=shown_state(query.get("state", "ready")),
            sent_from=read_instant("sent_from", query.get("sent_from"), default=0),
            sent_before=read_instant(
                "sent_before", query.get("sent_before"), default=MAX_INSTANT + 1
            ),
            **{name: query[name] for name in _LABELS if name in query},
        )
        name = request.params["queue"]
        queue = self._directory.cached(name) or await self._directory.load(name)
        limit = read_limit(query.get("limit"))
        after: Any = from_cursor(query.get("cursor"), 4)
        if pick.is_everything:
            page = await self._messages.browse(queue, pick.state, limit=limit, after=after)
        else:
            page = await self._picking.page(queue, pick, limit=limit, after=after)
        following = None if page.after is None else to_cursor(*page.after)
        return json_response(wire.PageOut([shown(view) for view in page.views], following))

    async def get(self, request: Request, respond: Respond) -> Response:
        view = await self._messages.get(request.params["id"])
        access.allow(request.caller, Role.READ, view.queue)
        return json_response(shown(view))

    async def reschedule(self, request: Request, respond: Respond) -> Response:
        wanted = wire_in.decode(_reschedule, request.body)
        due_at = self._messages.due_at(
            None if wanted.due_at is None else parse_instant("due_at", wanted.due_at),
            wanted.delay_ms,
        )
        await self._check(request)
        return _changed(await self._messages.reschedule(request.params["id"], due_at=due_at))

    async def complete(self, request: Request, respond: Respond) -> Response:
        reason = wire_in.decode(_reason, request.body).reason
        await self._check(request)
        return _changed(await self._messages.complete(request.params["id"], reason=reason))

    async def cancel(self, request: Request, respond: Respond) -> Response:
        wanted = wire_in.decode(_ending, request.body)
        await self._check(request)
        cancelled = await self._messages.cancel(
            request.params["id"], reason=wanted.reason, is_running_ok=wanted.is_running_ok
        )
        return _changed(cancelled)

    async def bury(self, request: Request, respond: Respond) -> Response:
        wanted = wire_in.decode(_ending, request.body)
        await self._check(request)
        await self._messages.bury(
            request.params["id"], reason=wanted.reason, is_running_ok=wanted.is_running_ok
        )
        # Where it rests, or stands in line as a dead letter: for the caller it is dead.
        return json_response(wire.BuriedOut(request.params["id"], State.DEAD))

    async def redrive(self, request: Request, respond: Respond) -> Response:
        await self._check(request)
        return _changed(await self._messages.redrive(request.params["id"]))

    async def _check(self, request: Request) -> None:
        """May the caller act on the queue that holds this message?"""
        if "*" not in request.caller.queues:
            view = await self._messages.get(request.params["id"])
            access.allow(request.caller, Role.OPERATE, view.queue)


def _changed(message: Message) -> Response:
    return json_response(wire.ActedOut(message.id, message.state, to_text(message.due_at)))


def shown(view: MessageView) -> wire.MessageOut:
    message = view.message
    if isinstance(message, Ending):
        return _ended(view, message)
    out = wire.message_out(view.queue, message, view.content)
    out.dead_from = view.dead_from
    if message.leased_at is not None:
        out.leased_at = to_text(message.leased_at)
    if message.state is State.LEASED:
        out.leased_until = to_text(message.due_at)
    else:
        out.due_at = to_text(message.due_at)
    return out


def _ended(view: MessageView, ending: Ending) -> wire.MessageOut:
    shown = history.Ending.of(ending, to_text)  # type: ignore[arg-type]
    out = wire.MessageOut(
        ending.id, ending.queue, ending.outcome, ending.attempts, to_text(ending.sent_at)
    )
    for name in _OF_AN_ENDING:
        setattr(out, name, getattr(shown, name))
    out.tags = list(shown.tags)
    if view.content is not None:
        out.body = msgspec.Raw(view.content.body.encode())
        out.attributes = view.content.attributes
        out.trace = view.content.trace
    return out
