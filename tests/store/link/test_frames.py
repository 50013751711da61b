"""Frames between fronts and the writer: whole, in parts, and with every error."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

from penstock.domain import errors
from penstock.domain.errors import PenstockError, QueueNotFound
from penstock.domain.limits import DEFAULT_LIMITS
from penstock.domain.message.draft import Draft, NewMessage, send
from penstock.domain.message.lease import Lease, LeaseAct, Verb
from penstock.domain.queue.queue import Queue, QueueSettings
from penstock.ports.link import ForwardedRequest, pack_error, unpack_error
from penstock.ports.store import Claim, Sent
from penstock.store.link.frames import (
    ActFrame,
    ClaimFrame,
    FrameConnection,
    FromFront,
    RequestFrame,
    SendFrame,
    SentFrame,
    decode_from_front,
    decode_from_writer,
    unpack_errors,
)
from tests.clocks import NOON

QUEUE = Queue(queue_no=7, name="mail", settings=QueueSettings(), created_at=NOON)
LEASE = Lease(1, 2, 7, NOON)


def new_message(body: str = '"hello"') -> NewMessage:
    draft = Draft(body=body, attributes={"a": "b"}, kind="greet", tags=("x", "y"))
    return send(draft, QUEUE, now=NOON, message_id="an id", limits=DEFAULT_LIMITS)


@pytest.mark.parametrize("kind", errors.all_errors())
def test_every_error_of_the_contract_keeps_its_class_and_its_text(
    kind: type[PenstockError],
) -> None:
    error = kind("what went wrong")

    restored = unpack_error(pack_error(error))

    assert type(restored) is kind
    assert (restored.code, str(restored)) == (kind.code, str(error))


def test_an_error_of_the_store_s_own_becomes_the_one_it_is_for_callers() -> None:
    class Occupied(errors.StoreUnavailable):
        pass

    assert type(unpack_error(pack_error(Occupied("busy")))) is errors.StoreUnavailable
    assert type(unpack_error(pack_error(ValueError("oh")))) is PenstockError


def test_requests_arrive_as_they_were_sent() -> None:
    act = LeaseAct(lease=LEASE, verb=Verb.FAIL, now=NOON, text="broken", delay_ms=5)
    records: list[FromFront] = [
        SendFrame(1, [new_message()]),
        ActFrame(2, [act]),
        ClaimFrame(3, Claim(queue_no=7, now=NOON, finishing=[act], kinds=("a", "b")), "mail", 100),
        RequestFrame(4, ForwardedRequest("GET", "/x", b"a=b", {b"host": b"y"}, b"\x00", "::1")),
    ]

    assert passed(decode_from_front, records) == [records]


def test_answers_and_errors_among_them_arrive_as_they_were_sent() -> None:
    answers: list[Any] = [Sent("an id"), QueueNotFound(7), Sent("another", True, 5)]

    [[record]] = passed(decode_from_writer, [SentFrame(9, answers)])

    assert isinstance(record, SentFrame)
    first, error, last = unpack_errors(record.answers)
    assert (first, last) == (answers[0], answers[2])
    assert type(error) is QueueNotFound
    assert str(error) == str(answers[1])


def test_answers_without_errors_are_taken_as_they_are() -> None:
    answers = [Sent("an id")]

    assert unpack_errors(answers) is answers


def test_frames_may_arrive_in_any_parts() -> None:
    frames = [[SendFrame(n, [new_message('"' + "x" * n * 50 + '"')])] for n in range(1, 4)]
    data = b"".join(bytes_of(frame) for frame in frames)

    for size in (1, 3, 7, 100, len(data)):
        received: list[list[FromFront]] = []

        async def feed(size: int = size, received: Any = received) -> None:
            connection = FrameConnection(decode_from_front, received.append, lambda: None)
            for start in range(0, len(data), size):
                connection.data_received(data[start : start + size])

        asyncio.run(feed())
        assert received == frames


def passed(decode: Callable[[memoryview], list[Any]], records: list[Any]) -> list[list[Any]]:
    """Send the records through a socket; returns the frames that arrive."""

    async def run() -> list[list[Any]]:
        received: list[list[Any]] = []
        is_there = asyncio.Event()

        def take(frame: list[Any]) -> None:
            received.append(frame)
            is_there.set()

        ours, theirs = socket.socketpair()
        loop = asyncio.get_running_loop()
        near: FrameConnection[Any] = FrameConnection(decode, take, lambda: None)
        far: FrameConnection[Any] = FrameConnection(decode, take, lambda: None)
        await loop.create_unix_connection(lambda: near, sock=ours)
        await loop.create_unix_connection(lambda: far, sock=theirs)
        for record in records:
            near.send(record)
        await is_there.wait()
        near.close()
        return received

    return asyncio.run(run())


def bytes_of(frame: list[Any]) -> bytes:
    async def send_all() -> bytes:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        loop = asyncio.get_running_loop()
        near: FrameConnection[Any] = FrameConnection(decode_from_front, print, lambda: None)
        await loop.create_unix_connection(lambda: near, sock=ours)
        for record in frame:
            near.send(record)
        with theirs:
            found = await loop.sock_recv(theirs, 1 << 20)
        near.close()
        return found

    return asyncio.run(send_all())
