"""The layer between the HTTP server and the operations."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from penstock.edge.aws.api import PendingAnswer
from penstock.edge.server.request import Response
from penstock.edge.sqs import api
from penstock.edge.sqs.wire.model import ListQueuesResult
from penstock.edge.sqs.wire.operations import JSON, OPERATIONS, SqsOperation
from tests.edge.live import LiveServer


def test_an_operation_without_a_handler_is_found_at_start(
    server: LiveServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(OPERATIONS, "Forgotten", SqsOperation("ListQueues"))

    with pytest.raises(KeyError, match="Forgotten"):
        api.SqsApi(server.broker, None, scheme="http", home=None)  # type: ignore[arg-type]


@pytest.fixture
def sqs_api(server: LiveServer) -> api.SqsApi:
    return api.SqsApi(server.broker, None, scheme="http", home=None)  # type: ignore[arg-type]


# --- answers that are not complete when the store has answered ---

Waiting = list[weakref.ref[asyncio.Future[None]]]


def answered(served: api.SqsApi, end: Callable[[Waiting], Any]) -> list[Response]:
    """The responses of an operation that has to look something up; `end` ends the lookup."""
    responses: list[Response] = []
    waiting: Waiting = []

    async def look_up(answer: object) -> ListQueuesResult:
        future = asyncio.get_running_loop().create_future()
        waiting.append(weakref.ref(future))
        await future
        return ListQueuesResult()

    async def run() -> None:
        operation = OPERATIONS["ListQueues"]
        promise = PendingAnswer(None, look_up)  # type: ignore[arg-type]
        served._finish(JSON, operation, promise, "an id", responses.append, "an answer")
        await asyncio.sleep(0)
        end(waiting)
        for _ in range(3):
            await asyncio.sleep(0)

    asyncio.run(run())
    return responses


def test_an_answer_that_waits_is_not_lost_to_the_garbage_collector(sqs_api: api.SqsApi) -> None:
    def end(waiting: Waiting) -> None:
        gc.collect()
        future = waiting[0]()
        assert future is not None
        future.set_result(None)

    [response] = answered(sqs_api, end)

    assert response.status == 200


def test_an_answer_that_is_cancelled_is_a_refusal(sqs_api: api.SqsApi) -> None:
    def end(waiting: Waiting) -> None:
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    [response] = answered(sqs_api, end)

    assert response.status == 503
