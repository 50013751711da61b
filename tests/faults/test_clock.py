"""Clocks jump by an hour, and the clocks of two nodes differ."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from functools import partial

from yarl import URL

from penstock.outbound.sqs_source import Credentials, signed_headers
from tests.faults.checker import Rules
from tests.faults.conftest import MakeServer
from tests.faults.consumers import claim
from tests.faults.figures import figure
from tests.faults.history import History, Outcome
from tests.faults.load import Load
from tests.faults.scenario import SHARED_CLOCK_SLACK_S, assert_kept, judge, two_nodes
from tests.faults.server import ROOT, Server
from tests.faults.wire import Wire
from tests.faults.workload import Workload

HOUR_S = 3600
DAY_S = 24 * HOUR_S
PROBE = "faults-clock"
LEASE_MS = 1000
REDELIVERED_WITHIN_S = LEASE_MS / 1000 + 5
JUMPS_S = [HOUR_S, 0, -HOUR_S, 0, HOUR_S, -HOUR_S]


def set_clock(server: Server, shift_s: float, *, restart: bool) -> None:
    """Shift the clock of the running broker, and of its next start if it is restarted."""
    server.options["clock_shift_s"] = shift_s
    server.steer(set={"clock_shift_s": shift_s})
    if restart:
        server.kill()
        server.start()


def abandon_one(server: Server) -> None:
    """Leave a message leased and another delayed across the jump."""
    wire, history = Wire(server.port), History()
    assert wire.call("PUT", f"/v1/queues/{PROBE}", {"max_attempts": None}).outcome is Outcome.OK
    for draft in ({"body": 1}, {"body": 2, "delay_ms": 500}):
        answer = wire.call("POST", f"/v1/queues/{PROBE}/messages", draft)
        assert answer.outcome is Outcome.OK, answer
    _, claims = claim(wire, history, PROBE, limit=1, lease_ms=LEASE_MS)
    assert len(claims) == 1
    wire.close()


def assert_both_come_back(server: Server) -> None:
    wire, history, began = Wire(server.port), History(), time.monotonic()
    seen: set[int] = set()
    while len(seen) < 2 and time.monotonic() < began + REDELIVERED_WITHIN_S:
        _, claims = claim(wire, history, PROBE, limit=1, lease_ms=60_000)
        seen |= {op.body for op in claims}
        for op in claims:
            wire.call("POST", f"/v1/leases/{op.receipt}/complete", {})
    wire.close()
    assert seen == {1, 2}, f"only {seen} came back within {REDELIVERED_WITHIN_S} s"


def test_a_clock_that_jumps_by_an_hour_hides_no_message(server: Server) -> None:
    """Forward and back, while it runs and across restarts."""
    is_shared = isinstance(
        server.store, str
    )  # then the database's clock counts, which does not jump

    def jump(load: Load) -> None:
        for number, shift_s in enumerate(JUMPS_S[: figure(3, len(JUMPS_S))]):
            load.wait_for_sends(100, within_s=60)
            abandon_one(server)
            load.fault(
                f"clock at {shift_s:+} s",
                partial(set_clock, server, shift_s, restart=number != 2),
            )
            assert_both_come_back(server)
        load.wait_for_sends(acked - load.history.acked(), within_s=60)

    acked = figure(300, 5000)
    # After it is set back, a store assigns ids that sort before earlier ones.
    rules = Rules(min_acked=acked, leases_may_end_early=not is_shared, ids_are_ordered=is_shared)
    workload = Workload(producers=figure(3, 4), batch=figure(5, 10))

    assert_kept(judge(server, jump, rules, workload=workload), server)


def test_nodes_whose_clocks_differ_never_lease_a_message_twice(
    make_server: MakeServer, database: str
) -> None:
    behind, ahead = two_nodes(make_server(database), make_server(database, clock_shift_s=2.5))
    ports = [behind.port, ahead.port]

    def work(load: Load) -> None:
        load.wait_for_sends(1000, within_s=30)

    workload = Workload(lease_ms=800, abandons=0.1, consumers=6)
    rules = Rules(min_acked=1000, ids_are_ordered=False, slack_s=SHARED_CLOCK_SLACK_S)
    verdict = judge(behind, work, rules, workload=workload, ports=ports)

    assert_kept(verdict, behind, ahead)


def test_a_start_with_a_clock_in_the_future_leaves_nothing_behind(make_server: MakeServer) -> None:
    """Like a machine that starts before its clock is synchronized."""
    server = make_server(clock_shift_s=2 * DAY_S)
    server.start()
    key = json.loads(penstock(server, "keys", "create", "--name", "a", "--role", "operate"))
    abandoned = signed(server, key, "CreateQueue", {"QueueName": "q"}, shift_s=2 * DAY_S)
    assert abandoned == 200, "the wrong clock is the one to sign by, while it lasts"
    set_clock(server, 0, restart=True)

    assert signed(server, key, "ListQueues", {}) == 200
    assert signed(server, key, "ListQueues", {}, shift_s=2 * DAY_S) == 403
    log = server.stderr_tail()
    assert log.count("the store's time is set back from") == 1
    assert "by 1 d 23 h 59 min" in log or "by 2 d" in log


def test_messages_and_leases_survive_a_clock_that_was_in_the_future(
    make_server: MakeServer,
) -> None:
    server = make_server(clock_shift_s=2 * DAY_S)
    server.start()
    abandon_one(server)
    set_clock(server, 0, restart=True)

    assert_both_come_back(server)
    wire = Wire(server.port)
    tomorrow = int((time.time() + DAY_S) * 1000)
    draft = {"body": 3, "due_at": tomorrow}
    assert wire.call("POST", f"/v1/queues/{PROBE}/messages", draft).outcome is Outcome.OK
    _, claims = claim(wire, History(), PROBE, limit=1, lease_ms=LEASE_MS)
    wire.close()
    assert claims == [], "due tomorrow"


def penstock(server: Server, *words: str) -> str:
    command = [sys.executable, "-m", "penstock", *words, "--data", str(server.store), "--json"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def signed(
    server: Server, key: dict[str, str], operation: str, asked: object, *, shift_s: float = 0
) -> int:
    """The status of an SQS request that was signed at the real time plus `shift_s`."""
    url, payload = URL(f"http://127.0.0.1:{server.port}/"), json.dumps(asked).encode()
    headers = signed_headers(
        url,
        payload,
        {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"AmazonSQS.{operation}"},
        who=Credentials(key["id"], key["aws_secret_access_key"]),
        region="eu-central-1",
        service="sqs",
        now=int((time.time() + shift_s) * 1000),
    )
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    connection.request("POST", "/", payload, headers)
    status = connection.getresponse().status
    connection.close()
    return status
