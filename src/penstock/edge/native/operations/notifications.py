"""Notifications over HTTP: recorded for a set time, found by their tags, moved, removed."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock.api.queues import Cancelled
from penstock.domain.access import api_key as access
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.datetimes import read_instant
from penstock.domain.errors import (
    InvalidRequest,
    PenstockError,
    QueueFull,
    QueueNotFound,
    WrongState,
)
from penstock.domain.limits import MAX_INSTANT
from penstock.domain.message.history import HistoryFilter
from penstock.domain.message.lifecycle import Message
from penstock.domain.message.notification import FUTURE_TOKEN
from penstock.domain.queue.queue import check_name
from penstock.edge.instants import to_text
from penstock.edge.native import wire
from penstock.edge.native import wire_bus as bus
from penstock.edge.native.operations.messages import shown
from penstock.edge.server.request import Request, Respond, Response, json_response
from penstock.edge.server.router import Route
from penstock.operations.cursor import from_cursor, read_limit, to_cursor
from penstock.ports.store import Sent
from penstock.services.directory import Directory
from penstock.services.messages import Messages
from penstock.services.notifications import FUTURE, HELD, LIVE, Notifications, Wanted

_WHICH = {"future": FUTURE, "leased": HELD, "live": LIVE}
_TAGS = ("queue", "tag", "tag1", "tag2")
_FIND = (*_TAGS, "which", "due_from", "due_before", "limit", "cursor")
_PAST = (*_TAGS, "from", "to", "limit", "cursor")
_EXAMPLE = {
    "queue": "mail",
    "due_at": "2031-12-24T18:00:00Z",
    "body": {"invoice": 7},
    "tags": ["account-1", "tenant-1"],
}


class NotificationApi:
    def __init__(
        self, notifications: Notifications, messages: Messages, directory: Directory
    ) -> None:
        self._notifications = notifications
        self._messages = messages
        self._directory = directory

    def routes(self) -> list[Route]:
        everything, one = "/v1/notifications", "/v1/notifications/{id}"

        def route(method: str, path: str, handler: Any, summary: str, **more: Any) -> Route:
            return Route(method=method, path=path, handler=handler, summary=summary, **more)

        return [
            route(
                "POST",
                everything,
                self.record,
                "Record a notification: a message for a set time.",
                name="recordNotification",
                scope=Scope.NAMED,
                role=Role.PRODUCE,
                takes=bus.NewNotificationIn,
                example=_EXAMPLE,
                gives=bus.RecordedOut,
                status=201,
                refuses=(QueueFull, QueueNotFound),
            ),
            route(
                "GET",
                everything,
                self.find,
                "Notifications that have not ended, by their tags, as they were recorded.",
                name="findNotifications",
                scope=Scope.NAMED,
                role=Role.READ,
                gives=bus.NotificationsOut,
                query=_FIND,
                refuses=(QueueNotFound,),
            ),
            route(
                "DELETE",
                everything,
                self.remove_all,
                "Cancel all that are in line and have these tags.",
                name="removeNotifications",
                scope=Scope.NAMED,
                role=Role.OPERATE,
                gives=Cancelled,
                query=_TAGS,
                refuses=(QueueNotFound,),
            ),
            route(
                "GET",
                f"{everything}/history",
                self.past,
                "Notifications that have ended, by their tags, newest first.",
                name="pastNotifications",
                scope=Scope.NAMED,
                role=Role.READ,
                gives=bus.NotificationsOut,
                query=_PAST,
            ),
            route(
                "GET",
                one,
                self.get,
                "One notification, live or from history.",
                name="getNotification",
                scope=Scope.NAMED,
                role=Role.READ,
                gives=bus.NotificationOut,
            ),
            route(
                "PATCH",
                one,
                self.change,
                "Another date, body, kind or tags, while it is in line.",
                name="changeNotification",
                scope=Scope.NAMED,
                role=Role.OPERATE,
                takes=bus.ChangeIn,
                example={"due_at": "2031-12-31T18:00:00Z"},
                gives=wire.ActedOut,
                refuses=(WrongState,),
            ),
            route(
                "DELETE",
                one,
                self.remove,
                "Cancel it; only while nobody is at it.",
                name="removeNotification",
                scope=Scope.NAMED,
                role=Role.OPERATE,
                gives=wire.ActedOut,
                refuses=(WrongState,),
            ),
            route(
                "GET",
                "/v1/messages",
                self.tagged,
                "Live messages with a tag, in the order in which they were sent.",
                name="findMessages",
                scope=Scope.NAMED,
                role=Role.READ,
                gives=wire.PageOut,
                query=_FIND,
                refuses=(QueueNotFound,),
            ),
        ]

    async def record(self, request: Request, respond: Respond) -> Response:
        wanted = bus.read_notification(request.body)
        access.allow(request.caller, Role.PRODUCE, check_name(wanted.queue))
        directory = self._directory
        queue = directory.cached(wanted.queue) or await directory.load_to_send(wanted.queue)
        new = self._notifications.plan(queue, wanted.draft(), user_token=wanted.user_token)
        [sent] = await self._messages.send([new])
        if isinstance(sent, PenstockError):
            if isinstance(sent, QueueNotFound):
                directory.forget(wanted.queue)
                raise QueueNotFound(wanted.queue)
            raise sent
        return json_response(_recorded(sent, new.message, new.content.attributes or {}), 201)

    async def find(self, request: Request, respond: Respond) -> Response:
        found = await self._notifications.find(await self._wanted(request))
        listed = [bus.notification_out(view) for view in found.views]
        return json_response(bus.NotificationsOut(listed, _next(found.next_no)))

    async def tagged(self, request: Request, respond: Respond) -> Response:
        found = await self._notifications.find(await self._wanted(request))
        return json_response(
            wire.PageOut([shown(view) for view in found.views], _next(found.next_no))
        )

    async def past(self, request: Request, respond: Respond) -> Response:
        query = request.query(*_PAST)
        _allow_some(request, query, Role.READ)
        if not query.keys() & {"tag", "tag1", "tag2"}:
            raise InvalidRequest("notifications are found by their tags: name tag1, tag2 or tag")
        before: Any = from_cursor(query.get("cursor"), 2)
        wanted = HistoryFilter(
            queue=check_name(query["queue"]) if "queue" in query else None,
            tag=query.get("tag"),
            tag1=query.get("tag1"),
            tag2=query.get("tag2"),
            from_at=read_instant("from", query.get("from"), default=0),
            to_at=read_instant("to", query.get("to"), default=2**62),
            before=before,
            limit=read_limit(query.get("limit")),
        )
        page = await self._notifications.past(wanted)
        following = None if page.before is None else to_cursor(*page.before)
        listed = [bus.notification_out(view) for view in page.views]
        return json_response(bus.NotificationsOut(listed, following))

    async def get(self, request: Request, respond: Respond) -> Response:
        view = await self._messages.get(request.params["id"])
        access.allow(request.caller, Role.READ, view.queue)
        return json_response(bus.notification_out(view))

    async def change(self, request: Request, respond: Respond) -> Response:
        wanted = bus.read_change(request.body)
        await self._check(request)
        return _changed(await self._notifications.change(request.params["id"], wanted))

    async def remove(self, request: Request, respond: Respond) -> Response:
        await self._check(request)
        return _changed(await self._notifications.remove(request.params["id"]))

    async def remove_all(self, request: Request, respond: Respond) -> Response:
        query = request.query(*_TAGS)
        _allow_some(request, query, Role.OPERATE)
        wanted = Wanted(queue_no=await self._queue_no(query), **_tags(query))
        total = 0
        while not (removed := await self._notifications.remove_some(wanted)).is_done:
            total += removed.cancelled
            await asyncio.sleep(0)
        return json_response(Cancelled(cancelled=total))

    async def _wanted(self, request: Request) -> Wanted:
        query = request.query(*_FIND)
        _allow_some(request, query, Role.READ)
        which = query.get("which", "live")
        if which not in _WHICH:
            raise InvalidRequest("which is future, leased or live")
        [after_no] = from_cursor(query.get("cursor"), 1) or [0]
        return Wanted(
            queue_no=await self._queue_no(query),
            states=_WHICH[which],
            due_from=read_instant("due_from", query.get("due_from"), default=0),
            due_before=read_instant("due_before", query.get("due_before"), default=MAX_INSTANT + 1),
            after_no=after_no,
            limit=read_limit(query.get("limit")),
            **_tags(query),
        )

    async def _queue_no(self, query: dict[str, str]) -> int | None:
        if "queue" not in query:
            return None
        name = check_name(query["queue"])
        return (self._directory.cached(name) or await self._directory.load(name)).queue_no

    async def _check(self, request: Request) -> None:
        """May the caller act on the queue that holds it?"""
        if "*" not in request.caller.queues:
            view = await self._messages.get(request.params["id"])
            access.allow(request.caller, Role.OPERATE, view.queue)


def _allow_some(request: Request, query: dict[str, str], role: Role) -> None:
    if "*" not in request.caller.queues:
        if "queue" not in query:
            raise InvalidRequest("this key is for some queues only: name one with ?queue=")
        access.allow(request.caller, role, query["queue"])


def _tags(query: dict[str, str]) -> dict[str, Any]:
    return {name: query[name] for name in ("tag", "tag1", "tag2") if name in query}


def _next(next_no: int | None) -> str | None:
    return None if next_no is None else to_cursor(next_no)


def _recorded(sent: Sent, message: Message, attributes: dict[str, str]) -> bus.RecordedOut:
    # Of a duplicate the first one's token counts, which is with that one.
    token = None if sent.is_duplicate else attributes[FUTURE_TOKEN]
    return bus.RecordedOut(sent.id, sent.is_duplicate, to_text(message.due_at), token)


def _changed(message: Message) -> Response:
    return json_response(wire.ActedOut(message.id, message.state, to_text(message.due_at)))
