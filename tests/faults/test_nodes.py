"""One of two nodes on one PostgreSQL is killed, or sleeps past its leases."""

from __future__ import annotations

import threading
import time

from tests.faults.checker import Rules
from tests.faults.conftest import MakeServer
from tests.faults.consumers import act_on, claim
from tests.faults.figures import figure
from tests.faults.history import History, Op, Outcome
from tests.faults.load import Load
from tests.faults.probe import Probe
from tests.faults.scenario import SHARED_CLOCK_SLACK_S, assert_kept, judge, two_nodes
from tests.faults.wire import Answer, Wire


def test_when_one_of_two_nodes_is_killed_the_other_keeps_serving(
    make_server: MakeServer, database: str
) -> None:
    first, second = two_nodes(make_server(database), make_server(database))
    probe = Probe(second.port)
    probe.make_queue()

    def lose_the_first(load: Load) -> None:
        for _ in range(figure(1, 5)):
            load.wait_for_sends(200, within_s=60)
            load.fault("a node is killed", first.kill)
            assert all(answer.outcome is Outcome.OK for answer in probe.send_for(1.0))
            first.start()
        load.wait_for_sends(100, within_s=60)

    rules = Rules(min_acked=200, ids_are_ordered=False, slack_s=SHARED_CLOCK_SLACK_S)
    verdict = judge(second, lose_the_first, rules, ports=[first.port, second.port])

    assert_kept(verdict, first, second)


def test_a_node_that_slept_past_a_lease_cannot_act_on_it_when_it_wakes(
    make_server: MakeServer, database: str
) -> None:
    sleeper, other = two_nodes(make_server(database), make_server(database))
    history = History()
    here, there = Wire(sleeper.port, timeout=10), Wire(other.port)
    assert there.call("PUT", "/v1/queues/q", {"max_attempts": None}).outcome is Outcome.OK
    assert there.call("POST", "/v1/queues/q/messages", {"body": 1}).outcome is Outcome.OK
    _, first = claim(here, history, "q", limit=1, lease_ms=600)
    sleeper.pause()
    late: list[Answer] = []
    # Sent before the lease ends, read by the node only when it wakes.
    acting = threading.Thread(
        target=lambda: late.append(act_on(here, history, first[0], "complete"))
    )
    acting.start()
    second: list[Op] = []
    deadline = time.monotonic() + 5
    while not second and time.monotonic() < deadline:
        _, second = claim(there, history, "q", limit=1, lease_ms=20_000)

    sleeper.resume()
    acting.join(12)

    assert second, "the other node never got the message"
    assert late, "the woken node never answered"
    assert late[0].code == "lease_lost", f"a stale act was answered {late[0]}"
    assert act_on(there, history, second[0], "complete").outcome is Outcome.OK
