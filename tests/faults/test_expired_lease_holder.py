"""I2 by hand: a holder whose lease expired and whose message was claimed again can do nothing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.consumers import act_on, claim
from tests.faults.history import History, Outcome
from tests.faults.server import Server
from tests.faults.wire import Wire

QUEUE = "faults-stale"
SETTINGS = {"max_attempts": None, "backoff": {"type": "fixed", "delay_ms": 0}}
ACTS: list[tuple[str, dict[str, Any]]] = [
    ("complete", {}),
    ("extend", {"lease_ms": 60_000}),
    ("fail", {"error": "late"}),
    ("release", {}),
    ("snooze", {"delay_ms": 60_000}),
    ("bury", {"reason": "late"}),
    ("cancel", {"reason": "late"}),
]


@pytest.mark.parametrize("is_killed", [False, True], ids=["running", "killed meanwhile"])
def test_a_stale_lease_holder_changes_nothing_for_the_current_one(
    server: Server, is_killed: bool
) -> None:
    history, wire = History(), Wire(server.port)
    assert wire.call("PUT", f"/v1/queues/{QUEUE}", SETTINGS).outcome is Outcome.OK
    for number in range(len(ACTS)):
        wire.call("POST", f"/v1/queues/{QUEUE}/messages", {"body": {"uid": str(number)}})
    _, stale = claim(wire, history, QUEUE, limit=len(ACTS), lease_ms=1)
    if is_killed:
        wire.close()
        server.kill()
        server.start()
    _, held = claim(wire, history, QUEUE, limit=len(ACTS), lease_ms=60_000)
    assert {op.uid for op in held} == {op.uid for op in stale}, "not all were claimed again"

    late = {
        verb: act_on(wire, history, op, verb, body).code
        for op, (verb, body) in zip(stale, ACTS, strict=True)
    }

    assert late == {verb: "lease_lost" for verb, _ in ACTS}
    for op in held:
        assert act_on(wire, history, op, "complete").outcome is Outcome.OK
    wire.close()
