"""The channel of a client that has the store in its own process."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from penstock.api import recurring
from penstock.api.operation import PageQuery
from penstock.client.local.channel import LocalChannel
from penstock.domain.errors import InvalidRequest, TransactionBusy

pytestmark = pytest.mark.no_store("flow")


def refuse() -> None:
    raise TransactionBusy("a transaction of this thread")


def answering_with_the_call(operation: object, refuse_deadlock: object = refuse) -> LocalChannel:
    return LocalChannel(
        {operation: lambda call: call},  # type: ignore[dict-item]
        refuse_deadlock=refuse_deadlock,  # type: ignore[arg-type]
    )


def test_a_write_is_refused_that_would_wait_for_the_callers_own_transaction() -> None:
    with pytest.raises(TransactionBusy):
        answering_with_the_call(recurring.PAUSE).request(recurring.PAUSE, schedule="nightly")


def test_a_read_does_not_wait_and_is_not_rejected() -> None:
    answering_with_the_call(recurring.LIST).request(recurring.LIST)


def test_work_in_the_callers_transaction_stays_on_the_callers_thread() -> None:
    threads: list[threading.Thread] = []
    channel = LocalChannel({recurring.PAUSE: lambda _: threads.append(threading.current_thread())})  # type: ignore[dict-item, return-value]

    async def on_a_loop() -> None:
        channel.request(recurring.PAUSE, tx=object(), schedule="nightly")

    asyncio.run(on_a_loop())

    assert threads == [threading.current_thread()]


def test_a_request_arrives_as_it_would_over_http() -> None:
    channel = answering_with_the_call(recurring.PUT, lambda: None)

    call: Any = channel.request(
        recurring.PUT, {"queue": "mail", "body": {"report": 7}}, schedule="nightly"
    )

    assert bytes(call.body.body) == b'{"report":7}'
    with pytest.raises(InvalidRequest, match="queue"):
        channel.request(recurring.PUT, {"queue": 7}, schedule="nightly")


def test_the_limits_of_a_query_are_those_of_http() -> None:
    channel = answering_with_the_call(recurring.LIST)

    with pytest.raises(InvalidRequest, match="limit"):
        channel.request(recurring.LIST, query=PageQuery(limit=0))
