"""Hundreds of slow clients and hundreds of idle ones; well-behaved clients are served."""

from __future__ import annotations

import threading
from time import monotonic

from tests.edge.api import Api
from tests.edge.native.hostile.conftest import ANSWERS_WITHIN_S
from tests.edge.process import ServerProcess
from tests.edge.raw import Raw, request
from tests.support.waiting import eventually

DRIPPING = 200
IDLE = 400
STEP_S = 0.25
CUT_OFF_S = 30.0  # it takes two or three seconds


def drips(wire: Raw) -> bool:
    """Send one more byte; return whether the server still accepts it."""
    try:
        wire.socket.send(b"a")
    except OSError:
        return False
    return True


def test_clients_that_send_single_bytes_are_cut_off_and_others_are_served(
    target: ServerProcess,
) -> None:
    polite = Api(target.url)
    queue = polite.make_queue()
    body = request("POST", f"/v1/queues/{queue}/messages", b"x" * 1_000)[:-1_000]
    idle = [Raw(target.port) for _ in range(IDLE)]
    dripping = [
        Raw(target.port).send(body if n % 2 else b"GET / HTTP/1.1\r\nX-A: ")
        for n in range(DRIPPING)
    ]

    slowest, until = 0.0, monotonic() + CUT_OFF_S
    while dripping and monotonic() < until:
        dripping = [wire for wire in dripping if drips(wire)]
        began = monotonic()
        polite.send(queue)
        slowest = max(slowest, monotonic() - began)
        threading.Event().wait(STEP_S)

    assert slowest < ANSWERS_WITHIN_S
    assert dripping == []
    eventually(lambda: all(wire.is_closed() for wire in idle), within_s=CUT_OFF_S)
    for wire in idle:
        wire.close()
    polite.close()


def test_clients_that_never_finish_a_chunked_body_are_cut_off(target: ServerProcess) -> None:
    headers = {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}
    head = request("POST", "/v1/queues/x/messages", headers=headers)
    wires = [Raw(target.port).send(head) for _ in range(50)]

    until = monotonic() + CUT_OFF_S
    while wires and monotonic() < until:
        for wire in wires:
            try:
                wire.socket.send(b"1\r\n \r\n")
            except OSError:
                wire.close()
        wires = [wire for wire in wires if wire.socket.fileno() != -1]
        threading.Event().wait(STEP_S)

    assert wires == []
