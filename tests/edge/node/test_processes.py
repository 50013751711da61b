"""Processes of a node that exit, hang or are stopped: what clients see, and what comes back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from functools import partial
from pathlib import Path
from time import monotonic

import httpx
import pytest

from tests.edge.api import Api, assert_refused, ok
from tests.edge.conftest import InBackground
from tests.edge.native.waiting import LONG_MS, SOON_S, waiting_claims
from tests.edge.node.conftest import MakeNode
from tests.edge.node.node import Node, is_running
from tests.edge.process import ROOT
from tests.edge.raw import ClosedError, Raw, request
from tests.support.waiting import eventually

# What does not depend on the store is tested on one.
on_sqlite = pytest.mark.parametrize("make_node", ["sqlite"], indirect=True)

CONNECTIONS = 24
QUEUES = request("GET", "/v1/queues")


def test_a_killed_front_takes_only_its_own_connections_with_it(make_node: MakeNode) -> None:
    node = make_node()
    raws = [Raw(node.port) for _ in range(CONNECTIONS)]
    assert [raw.ask(QUEUES).status for raw in raws] == [200] * CONNECTIONS

    node.signal("front-1", signal.SIGKILL)
    left = [raw for raw in raws if answers(raw)]

    assert 0 < len(left) < CONNECTIONS
    assert all(raw.ask(QUEUES).status == 200 for raw in left)
    eventually(lambda: "front-1" in node.processes() and is_healthy(node))
    assert is_served(node)
    for raw in raws:
        raw.close()


@pytest.mark.parametrize("name", ["writer", "front-2"])
def test_a_process_killed_while_it_starts_is_started_again(
    tmp_path: Path, in_background: InBackground, name: str
) -> None:
    node = Node(tmp_path / "data")
    starting = in_background(node.start)
    with closing(node):
        eventually(lambda: node.is_started and name in node.processes())
        node.signal(name, signal.SIGKILL)  # it still needs longer than this to be ready

        assert starting.result() is node
        assert set(node.processes()) == {"writer", "front-1", "front-2"}


def test_while_the_writer_is_down_clients_get_an_error_and_are_then_served_again(
    make_node: MakeNode, in_background: InBackground
) -> None:
    node = make_node()
    api = Api(node.url)
    queue = api.make_queue()
    sent = api.send(queue)
    waiting = in_background(
        Api(node.url).call, "POST", f"/v1/queues/{api.make_queue()}/claims", {"wait_ms": LONG_MS}
    )
    eventually(lambda: waiting_claims(api) == 1)
    began = monotonic()

    node.kill("writer")

    if is_sqlite(node):
        assert_refused(waiting.result(), 503, "store_unavailable")
        assert monotonic() - began < SOON_S
    eventually(lambda: is_healthy(node))
    assert Api(node.url).claim_one(queue)["id"] == sent


def test_a_writer_that_hangs_is_reported_and_does_not_hang_clients(make_node: MakeNode) -> None:
    node = make_node(store_request_timeout_ms=1_000)
    api = Api(node.url)
    queue = api.make_queue()
    api.send(queue)
    pid = node.signal("writer", signal.SIGSTOP)
    try:
        health = api.call("GET", "/healthz")
        ready = api.call("GET", "/readyz")
        sent = api.call("POST", f"/v1/queues/{queue}/messages", {"body": 1})
    finally:
        os.kill(pid, signal.SIGCONT)

    assert (health.status_code, health.json()["parts"][0]["name"]) == (503, "writer")
    assert_refused(ready, 503, "store_unavailable")
    if is_sqlite(node):
        assert_refused(sent, 503, "store_unavailable")
    eventually(lambda: is_healthy(node))
    api.send(queue)


@on_sqlite
def test_everything_exits_with_the_supervisor(make_node: MakeNode) -> None:
    node = make_node()
    pids = node.processes().values()

    os.kill(node.pid, signal.SIGKILL)

    eventually(lambda: not any(map(is_running, pids)))


@on_sqlite
def test_a_stopped_node_answers_waiting_claims_and_exits_with_zero(
    make_node: MakeNode, in_background: InBackground
) -> None:
    node = make_node()
    pids = node.processes().values()
    api = Api(node.url)
    queue = api.make_queue()
    claims = [in_background(Api(node.url).claim, queue, wait_ms=LONG_MS) for _ in range(8)]
    eventually(lambda: waiting_claims(api) == 8)
    began = monotonic()

    code = node.end(signal.SIGTERM)

    assert code == 0, node.log_tail()
    assert [claim.result() for claim in claims] == [[]] * 8
    assert monotonic() - began < SOON_S
    assert not any(map(is_running, pids))
    assert "ERROR" not in node.log_tail()


@on_sqlite
def test_messages_are_there_after_a_restart(make_node: MakeNode) -> None:
    node = make_node()
    queue = Api(node.url).make_queue()
    sent = {Api(node.url).send(queue, n) for n in range(20)}
    node.end()
    node.start()

    claimed = Api(node.url).claim(queue, limit=100)

    assert {message["id"] for message in claimed} == sent


@on_sqlite
def test_keys_are_required_on_every_front(make_node: MakeNode) -> None:
    node = make_node(auth_required="always")
    secret = new_key(node)

    for _ in range(8):
        with_key, without = Api(node.url, key=secret), Api(node.url)
        eventually(partial(is_let_in, with_key))
        assert without.call("GET", "/v1/queues").status_code == 401
        assert without.call("POST", "/v1/queues/none/claims", {}).status_code == 401


@on_sqlite
def test_a_port_in_use_is_reported(make_node: MakeNode, tmp_path: Path) -> None:
    node = make_node()

    second = serve(tmp_path / "other", "--port", str(node.port), "--processes", "2")

    assert second.returncode != 0
    assert "Address already in use" in second.stderr, second.stderr
    assert is_served(node)


def test_a_store_that_cannot_be_opened_is_reported_as_by_one_process(tmp_path: Path) -> None:
    wrong = "sqlite:////proc/nowhere/penstock.db"

    several = serve(tmp_path, "--store", wrong, "--port", "0", "--processes", "2")
    one = serve(tmp_path, "--store", wrong, "--port", "0")

    assert (several.returncode, several.stderr) == (one.returncode, one.stderr)
    assert one.stderr


def serve(data: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "penstock", "serve", "--data", str(data), *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def new_key(node: Node) -> str:
    words = ["keys", "create", "--name", "a test", "--role", "read", "--role", "consume"]
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *words, "--json"],
        cwd=ROOT,
        env={**os.environ, **node._env, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return str(json.loads(done.stdout)["secret"])


def is_let_in(api: Api) -> bool:
    listed = api.call("GET", "/v1/queues").status_code
    claimed = api.call("POST", "/v1/queues/none/claims", {}).status_code
    return (listed, claimed) == (200, 404)


def answers(raw: Raw) -> bool:
    try:
        return raw.ask(QUEUES).status == 200
    except (ClosedError, OSError):
        return False


def is_served(node: Node) -> bool:
    return all(Api(node.url).call("GET", "/v1/queues").status_code == 200 for _ in range(8))


def is_healthy(node: Node) -> bool:
    try:
        return all(
            Api(node.url).call("GET", path).status_code == 200
            for path in ("/healthz", "/readyz") * 4
        )
    except httpx.TransportError:
        return False


def is_sqlite(node: Node) -> bool:
    return bool(ok(Api(node.url).call("GET", "/v1/stats"))["backend"] == "sqlite")
