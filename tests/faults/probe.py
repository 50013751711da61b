"""A client beside the load that sends repeatedly during a fault and measures time."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from tests.faults.history import Outcome
from tests.faults.wire import Answer, Wire

QUEUE = "faults-probe"  # its own queue, which is not part of the totals


@dataclass(slots=True)
class Probe:
    port: int
    timeout_s: float = 15.0
    answers: list[Answer] = field(default_factory=list)

    def make_queue(self) -> None:
        wire = Wire(self.port)
        assert wire.call("PUT", f"/v1/queues/{QUEUE}", {}).outcome is Outcome.OK
        wire.close()

    def send_for(self, seconds: float) -> list[Answer]:
        """Send one after the other for `seconds`; returns the answers."""
        self.answers = []
        wire, deadline = Wire(self.port, timeout=self.timeout_s), time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.answers.append(self._send(wire))
            time.sleep(0.02)
        wire.close()
        return self.answers

    def seconds_until_a_send_works(self, within_s: float) -> float:
        began = time.monotonic()
        wire = Wire(self.port, timeout=self.timeout_s)
        try:
            while time.monotonic() < began + within_s:
                if self._send(wire).outcome is Outcome.OK:
                    return time.monotonic() - began
                time.sleep(0.02)
        finally:
            wire.close()
        raise AssertionError(f"no send worked within {within_s} s after the fault was over")

    def _send(self, wire: Wire) -> Answer:
        return wire.call("POST", f"/v1/queues/{QUEUE}/messages", {"body": "probe"})


def assert_all_refused(answers: list[Answer], *, within_s: float) -> None:
    """Every request got a 5xx in time."""
    assert answers, "nothing was asked"
    bad = [f"{a.status} after {a.seconds:.2f} s" for a in answers if not 500 <= a.status < 600]
    assert not bad, f"not refused: {bad[:5]} ({len(bad)} of {len(answers)})"
    slowest = max(answer.seconds for answer in answers)
    assert slowest <= within_s, f"a refusal took {slowest:.2f} s"
