"""Bodies over the limit, endless uploads, compressed bodies; memory stays bounded."""

from __future__ import annotations

import gzip
import json
from contextlib import ExitStack, suppress

from tests.edge.api import Api, assert_refused
from tests.edge.conftest import MakeProcess
from tests.edge.process import ServerProcess
from tests.edge.raw import ClosedError, Raw, request

MIB = 1024 * 1024
MAX_TAKEN = 64 * MIB
MAX_GROWTH = 250 * MIB
ENDLESS = 512 * MIB


def upload(wire: Raw, part: bytes) -> int:
    """Send until the server stops reading; returns how much it accepted."""
    sent = 0
    with suppress(OSError):
        while sent < ENDLESS:
            wire.socket.sendall(part)
            sent += len(part)
    return sent


def test_a_body_over_the_limit_is_refused_before_it_is_sent(target: ServerProcess) -> None:
    headers = {"Content-Length": str(13 * MIB), "Content-Type": "application/json"}

    with Raw(target.port) as wire:
        answer = wire.ask(request("POST", "/v1/queues/x/messages", headers=headers))

        assert (answer.status, json.loads(answer.body)["error"]["code"]) == (413, "too_large")
        assert wire.is_closed()


def test_an_upload_that_lies_about_its_length_is_cut_off(target: ServerProcess) -> None:
    headers = {"Content-Length": str(1024 * MIB), "Content-Type": "application/json"}

    with Raw(target.port) as wire:
        wire.send(request("POST", "/v1/queues/x/messages", headers=headers))

        assert upload(wire, b"x" * MIB) < MAX_TAKEN


def test_an_endless_upload_is_cut_off(target: ServerProcess) -> None:
    before = target.resident_bytes
    headers = {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}

    with Raw(target.port) as wire:
        wire.send(request("POST", "/v1/queues/x/messages", headers=headers))

        assert upload(wire, b"100000\r\n" + b"x" * MIB + b"\r\n") < MAX_TAKEN
    assert target.resident_bytes < before + MAX_GROWTH


def test_endless_headers_are_cut_off(target: ServerProcess) -> None:
    with Raw(target.port) as wire:
        wire.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")

        assert upload(wire, b"X-A: " + b"x" * 1_000 + b"\r\n") < MAX_TAKEN


def test_endless_trailers_after_a_body_are_cut_off(target: ServerProcess) -> None:
    headers = {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}
    with Raw(target.port) as wire:
        wire.send(request("POST", "/v1/queues/x/messages", headers=headers), b"2\r\n{}\r\n0\r\n")

        assert upload(wire, b"X-A: " + b"x" * 1_000 + b"\r\n") < MAX_TAKEN


def test_tiny_chunks_do_not_cost_more_than_they_carry(target: ServerProcess) -> None:
    """Stored one by one, each would take twenty times its size."""
    before = target.resident_bytes
    headers = {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}

    with Raw(target.port) as wire:
        wire.send(request("POST", "/v1/queues/x/messages", headers=headers))
        upload(wire, b"2\r\nxx\r\n" * 100_000)
        grown = target.resident_bytes - before

    assert grown < 40 * MIB


def test_many_that_fill_up_slowly_stay_within_bounds(target: ServerProcess) -> None:
    before = target.resident_bytes
    headers = {"Content-Length": str(12 * MIB), "Content-Type": "application/json"}
    wires = []
    for _ in range(8):
        wires.append(Raw(target.port))
        with suppress(OSError):  # a client that takes too long is cut off
            wires[-1].send(request("POST", "/v1/queues/x/messages", headers=headers))
            wires[-1].send(b"x" * (11 * MIB))
    grown = target.resident_bytes - before
    for wire in wires:
        wire.close()

    assert grown < MAX_GROWTH


def test_compressed_requests_are_not_taken(target: ServerProcess) -> None:
    bomb = gzip.compress(b"0" * (256 * MIB), compresslevel=9)
    assert len(bomb) < 300_000
    before = target.resident_bytes

    for encoding in ("gzip", "deflate", "br", "GZIP", "identity, gzip"):
        headers = {"Content-Encoding": encoding}
        with Raw(target.port) as wire:
            try:
                wire.send(request("POST", "/v1/queues/x/messages", bomb, headers=headers))
                answer = wire.answer()
            except (OSError, ClosedError):
                continue  # cut off while it was still sending
            assert answer.status == 415

    assert target.resident_bytes < before + 20 * MIB


def test_one_message_over_the_limit_is_refused(target: ServerProcess) -> None:
    api = Api(target.url)
    queue = api.make_queue()
    path = f"/v1/queues/{queue}/messages"

    assert api.call("POST", path, {"body": "x" * (MIB - 2)}).status_code == 201
    assert_refused(api.call("POST", path, {"body": "x" * (MIB - 1)}), 413, "too_large")
    assert api.counts(queue) == {"ready": 1}
    api.call("DELETE", f"/v1/queues/{queue}?force=true")


def test_many_large_bodies_at_once_do_not_fill_the_memory(make_process: MakeProcess) -> None:
    target = make_process(
        server_receive_timeout_ms=60_000
    )  # no connection closes before all are open
    before = target.resident_bytes
    headers = {"Content-Length": str(12 * MIB), "Content-Type": "application/json"}
    begun = request("POST", "/v1/queues/x/messages", headers=headers)
    statuses: list[int] = []

    with ExitStack() as stack:
        wires = [stack.enter_context(Raw(target.port)) for _ in range(16)]
        for wire in wires:
            with suppress(OSError):
                wire.send(begun + b"x" * (11 * MIB))  # the rest is never sent
        for wire in wires:
            wire.socket.settimeout(0.2)
            with suppress(OSError, ClosedError):
                statuses.append(wire.answer().status)
        grown = target.resident_bytes - before

    assert 429 in statuses
    assert grown < MAX_GROWTH
    with Raw(target.port) as polite:
        assert polite.ask(request("GET", "/healthz")).status == 200
