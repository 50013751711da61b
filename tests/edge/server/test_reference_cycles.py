"""Hot requests leave no reference cycles for Python's garbage collector.

The server rarely collects, and each cycle would keep a request with its body in memory until then.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from penstock.edge.routes import routes
from penstock.edge.server.app import App
from penstock.edge.server.request import Request, Response
from penstock.edge.server.router import Router
from penstock.runtime.waiting_claims import WaitingClaims
from penstock.settings import Settings
from penstock.store.commit.requests import StoreTicket
from penstock.wiring.broker import open_broker

TIMES = 20
LEFT = (Request, Response, StoreTicket)
MAIL = "/v1/queues/mail"
NOTHING_WAITS = {"limit": 1, "wait_ms": 0}


class Door:
    """The application without sockets: takes requests and returns responses."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def ask(self, path: str, content: Any, *, method: str = "POST", **headers: str) -> Any:
        answered: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        given = {name.replace("_", "-").encode(): value.encode() for name, value in headers.items()}
        request = Request(method, path, b"", given, json.dumps(content).encode())
        later = self._app(request, answered.set_result)
        response = await answered if later is None else await later
        assert response.status < 300, response.body
        return msgspec.json.decode(response.body) if response.body else None

    async def native(self, path: str, content: Any) -> Any:
        return await self.ask(path, content, content_type="application/json")

    async def sqs(self, operation: str, **members: Any) -> Any:
        members["QueueUrl"] = "http://localhost/000000000000/mail"
        target = f"AmazonSQS.{operation}"
        return await self.ask("/", members, x_amz_target=target)


async def native_cycle(door: Door) -> None:
    await door.native(f"{MAIL}/messages", {"body": "hello"})
    [message] = (await door.native(f"{MAIL}/claims", NOTHING_WAITS))["messages"]
    again = {**NOTHING_WAITS, "complete": [message["receipt"]]}
    await door.native(f"{MAIL}/claims", again)


async def native_batch(door: Door) -> None:
    drafts = {"messages": [{"body": "hello"}] * 3}
    await door.native(f"{MAIL}/messages/batch", drafts)


async def sqs_cycle(door: Door) -> None:
    await door.sqs("SendMessage", MessageBody="hello")
    [message] = (await door.sqs("ReceiveMessage"))["Messages"]
    await door.sqs("DeleteMessage", ReceiptHandle=message["ReceiptHandle"])


@contextmanager
def garbage_kept():
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize("some_requests", [native_cycle, native_batch, sqs_cycle])
def test_hot_requests_leave_no_reference_cycles(
    tmp_path, some_requests: Callable[[Door], Any]
) -> None:
    broker = open_broker(Settings(data=str(tmp_path)))

    async def main() -> list[object]:
        waiting = WaitingClaims(broker.messages, broker.clock, most=10, poll_ms=1_000)
        door = Door(
            App(Router(routes(broker, waiting)), broker.keyring, broker.logins, hosts=frozenset())
        )
        await door.ask(MAIL, {}, method="PUT", content_type="application/json")
        await some_requests(door)  # fills the caches, which stay
        with garbage_kept() as garbage:
            for _ in range(TIMES):
                await some_requests(door)
            gc.collect()
            return [type(one) for one in garbage if isinstance(one, LEFT)]

    try:
        assert asyncio.run(main()) == []
    finally:
        broker.close()
