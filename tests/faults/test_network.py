"""A bad network between clients and broker: lost answers, black holes, resets."""

from __future__ import annotations

import threading
import time
from functools import partial

from tests.faults.checker import Rules, check
from tests.faults.consumers import claim, complete_all
from tests.faults.drain import drain
from tests.faults.figures import figure
from tests.faults.history import History, Kind, Outcome
from tests.faults.load import Load
from tests.faults.producers import send_plain, sent_op
from tests.faults.proxy import Proxy, Weather
from tests.faults.scenario import assert_kept, judge
from tests.faults.server import Server
from tests.faults.wire import Wire
from tests.faults.workload import Workload

BAD_WEATHER = [Weather.ANSWERS_LOST, Weather.BLACKHOLE, Weather.SLOW]
PATIENCE_S = 0.7  # of the clients: shorter than an outage, so that they retry
QUEUE = "faults-dead-clients"
LEASE_MS = 1000


def test_fifo_sends_that_are_retried_through_a_bad_network_are_stored_once(
    server: Server,
) -> None:
    times, acked = figure(1, 5), figure(400, 5000)
    with Proxy(server.port) as proxy:

        def storm(load: Load) -> None:
            for _ in range(times):
                for weather in BAD_WEATHER:
                    load.wait_for_sends(100, within_s=60)
                    load.fault(weather, partial(setattr, proxy, "weather", weather))
                    time.sleep(1.0)
                    load.fault("fair again", lambda: setattr(proxy, "weather", Weather.FAIR))
                load.wait_for_sends(100, within_s=60)
                load.fault("reset", proxy.reset)
            load.wait_for_sends(acked - load.history.acked(), within_s=60)
            retried.extend(op for op in load.history.of(Kind.SEND) if op.attempts > 1)

        retried: list[object] = []
        workload = Workload(timeout_s=PATIENCE_S, senders=4)
        verdict = judge(
            server, storm, Rules(min_acked=acked), workload=workload, ports=[proxy.port]
        )

    assert_kept(verdict, server)
    assert retried, "no send was ever retried: nothing was proved"


def test_clients_that_die_while_they_wait_keep_no_message_beyond_its_lease(
    server: Server,
) -> None:
    history, wire = History(), Wire(server.port)
    settings = {"lease_ms": LEASE_MS, "max_attempts": None}
    assert wire.call("PUT", f"/v1/queues/{QUEUE}", settings).outcome is Outcome.OK
    bodies = [{"uid": f"d{n}"} for n in range(20)]
    for number in range(10):
        start_waiting_and_die(server.port, after_s=0.05 + number * 0.03)
    for body in bodies:
        answer, ids = send_plain(wire, QUEUE, [body])
        history.add(sent_op(answer, QUEUE, "w", body, ids[0]))
        time.sleep(0.02)
    sent = time.monotonic()

    done: set[str] = set()
    while len(done) < len(bodies) and time.monotonic() < sent + LEASE_MS / 1000 + 10:
        _, claims = claim(wire, history, QUEUE, limit=10, lease_ms=LEASE_MS)
        if claims:
            complete_all(wire, history, claims)
            done |= {op.uid for op in claims}

    assert len(done) == len(bodies), f"{len(bodies) - len(done)} kept by the dead"
    totals = drain(server.port, history, (QUEUE,), within_s=60)
    assert_kept(check(history, totals, Rules(min_acked=len(bodies))), server)
    wire.close()


def start_waiting_and_die(port: int, *, after_s: float) -> None:
    """Wait for a message, and die without closing the connection before or while it comes."""
    wire = Wire(port)
    wire.call("GET", "/healthz")

    def wait() -> None:
        path = f"/v1/queues/{QUEUE}/claims"
        wire.call("POST", path, {"limit": 1, "wait_ms": 5000, "lease_ms": LEASE_MS})

    def die() -> None:
        time.sleep(after_s)
        wire.reset()

    threading.Thread(target=wait, daemon=True).start()
    threading.Thread(target=die, daemon=True).start()
