"""Responses are bounded in bytes: a full page or claim ends early, and the next one continues."""

from __future__ import annotations

import socket
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from penstock.edge.server.traffic import Traffic
from penstock.edge.serving import serve
from tests.edge.api import Api, a_name
from tests.edge.conftest import InBackground, MakeProcess, MakeServer
from tests.edge.raw import Raw, request
from tests.support.waiting import eventually

MIB = 1024 * 1024
BODY = "x" * (400 * 1024)
PER_ANSWER = 2  # bodies of this size
COUNT = 5


@pytest.fixture
def api(make_server: MakeServer) -> Api:
    return Api(make_server(limits={"max_answer_bytes": MIB}).url)


def pages(api: Api, path: str, name: str, **query: Any) -> list[list[str]]:
    """The ids on each page."""
    found, cursor = [], None
    while True:
        page = api.get(path, limit=100, **query, **({"cursor": cursor} if cursor else {}))
        found.append([one["id"] for one in page[name]])
        cursor = page.get("next")
        if not cursor:
            return found


def fill(api: Api, queue: str, state: str) -> list[str]:
    match state:
        case "ready":
            return [api.send(queue, BODY, kind="k") for _ in range(COUNT)]
        case "waiting":
            return [api.send(queue, BODY, kind="k", delay_ms=60_000 + n) for n in range(COUNT)]
        case "leased":
            ids = [api.send(queue, BODY, kind="k") for _ in range(COUNT)]
            for n in range(COUNT):
                api.claim_one(queue, lease_ms=60_000 + n)
            return ids
        case _:
            return [api.die(queue, body=BODY, kind="k") for _ in range(COUNT)]


@pytest.mark.parametrize("state", ["ready", "waiting", "leased", "dead"])
@pytest.mark.parametrize("which", [{}, {"kind": "k"}])
def test_a_page_of_large_messages_ends_early_and_its_cursor_continues_there(
    api: Api, state: str, which: dict[str, str]
) -> None:
    queue = api.make_queue()
    ids = fill(api, queue, state)

    found = pages(api, f"/v1/queues/{queue}/messages", "messages", state=state, **which)

    assert found == [ids[:2], ids[2:4], ids[4:]]


def test_a_message_that_is_larger_than_an_answer_has_a_page_of_its_own(
    make_server: MakeServer,
) -> None:
    limits = {"max_answer_bytes": MIB, "max_body_bytes": 2 * MIB}
    api = Api(make_server(limits=limits).url)
    queue = api.make_queue(max_body_bytes=2 * MIB)
    ids = [api.send(queue, body) for body in ("x" * (2 * MIB - 2), 1)]

    assert pages(api, f"/v1/queues/{queue}/messages", "messages") == [ids[:1], ids[1:]]


def test_pages_of_notifications_end_early_as_well(api: Api) -> None:
    queue, account = api.make_queue(), a_name("account")
    drafts = [{"queue": queue, "body": BODY, "tags": [account]} for _ in range(COUNT)]
    ids = [api.call("POST", "/v1/notifications", draft).json()["id"] for draft in drafts]

    assert pages(api, "/v1/notifications", "notifications", tag1=account) == [
        ids[:2],
        ids[2:4],
        ids[4:],
    ]

    for _ in range(COUNT):
        api.act(api.claim_one(queue)["receipt"], "complete")
    past = pages(api, "/v1/notifications/history", "notifications", tag1=account)
    assert list(map(len, past)) == [2, 2, 1]
    assert sorted(one for page in past for one in page) == sorted(ids)


def test_a_claim_leases_what_fits_and_leaves_the_rest(api: Api) -> None:
    queue = api.make_queue()
    ids = fill(api, queue, "ready")

    assert [m["id"] for m in api.claim(queue, limit=100)] == ids[:PER_ANSWER]
    assert api.counts(queue) == {"ready": COUNT - PER_ANSWER, "leased": PER_ANSWER}
    assert [m["attempts"] for m in api.claim(queue, limit=100, wait_ms=1_000)] == [1] * PER_ANSWER


def test_clients_that_do_not_read_cannot_fill_the_memory_together(
    make_server: MakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection that reads nothing is cut first; others get their answers."""
    monkeypatch.setattr(serve, "Traffic", partial(Traffic, max_buffered_bytes=20 * MIB))
    server = make_server()
    api = Api(server.url)
    queue = api.make_queue()
    for _ in range(9):
        api.send(queue, "x" * (MIB - 2))
    look = request("GET", f"/v1/queues/{queue}/messages?limit=100")

    silent = [quiet(server.port) for _ in range(8)]
    for wire in silent:
        wire.send(look)
    eventually(lambda: sum(map(is_cut, silent)) >= 4)

    assert len(api.get(f"/v1/queues/{queue}/messages", limit=100)["messages"]) == 8
    for wire in silent:
        wire.close()


def quiet(port: int) -> Raw:
    """Limit what the kernel buffers for a client that does not read."""
    wire = Raw(port)
    wire.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    return wire


def is_cut(wire: Raw) -> bool:
    """Check without reading: an aborted connection rejects writes."""
    return wire.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0 or _is_reset(wire)


def _is_reset(wire: Raw) -> bool:
    try:
        wire.socket.send(b" ")
    except OSError:
        return True
    return False


def test_many_large_answers_at_once_take_little_memory(
    make_process: MakeProcess, in_background: InBackground
) -> None:
    server = make_process()
    api = Api(server.url)
    queue = api.make_queue()
    for _ in range(60):
        api.send(queue, "x" * (MIB - 2))
    before = peak_mib(server.pid)

    looks = [
        in_background(Api(server.url).get, f"/v1/queues/{queue}/messages", limit=100)
        for _ in range(5)
    ]
    assert [len(look.result()["messages"]) for look in looks] == [8] * 5
    assert sum(len(api.claim(queue, limit=100)) for _ in range(5)) == 40

    assert peak_mib(server.pid) - before < 300  # all of it five times, plus one copy, is 600


def peak_mib(pid: int) -> int:
    [line] = [
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmHWM" in line
    ]
    return int(line.split()[1]) // 1024
