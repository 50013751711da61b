"""A worker that ends at any request to the store repeats no step that it has recorded.

The end of a worker is an exception, after which its act is dropped: the lease expires.
tests/faults/test_killed_steps.py kills real processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from penstock import Penstock, sleep_sync, step_sync, wait_event_sync
from penstock.api.jobs import steps
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from tests.clocks import ManualClock
from tests.edge.api import a_name

pytestmark = pytest.mark.environments("worker")

STEPS = 10
PLACES = 2 * (STEPS + 2)  # before and after each step, a sleep and a wait


class WorkerEnded(BaseException):
    pass


class Requests:
    """Ends the worker before or after its nth request about the steps of a job."""

    def __init__(self, channel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.end_at(None)
        self._ask: Callable[..., Any] = type(channel).ask
        monkeypatch.setattr(type(channel), "ask", lambda *args: self._asked(*args))

    def end_at(self, place: int | None) -> None:
        self.place, self._count, self.has_ended = place, 0, False

    def _asked(self, channel: Any, ask: Any, tx: object = None) -> Any:
        if ask.operation not in (steps.RECORD, steps.WAIT):
            return self._ask(channel, ask, tx)
        self._pass()
        answer = self._ask(channel, ask, tx)
        self._pass()
        return answer

    def _pass(self) -> None:
        self._count += 1
        if self.place is not None and self._count == self.place + 1:
            self.has_ended = True
            raise WorkerEnded


class Job:
    """Ten steps with a sleep and a wait in between."""

    def __init__(self, app: Penstock, queue: str) -> None:
        self.did: Counter[str] = Counter()
        self.signal = a_name("approved")

        @app.job(queue=queue)
        def run() -> None:
            for number in range(STEPS):
                step_sync(f"step {number}", self.do, f"step {number}")
                if number == 3:
                    sleep_sync("10m")
                if number == 6:
                    assert wait_event_sync(self.signal, timeout="1h") == "yes"

        self.run = run

    def do(self, name: str) -> str:
        self.did[name] += 1
        return name


def recorded(app: Penstock, job_id: str) -> set[str]:
    return {one.name for one in app.backend.channel.request(steps.OF_MESSAGE, id=job_id).steps}


def test_a_worker_that_ends_at_any_request_repeats_no_recorded_step(
    app: Penstock,
    queue: str,
    driver: Any,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app.open()
    requests = Requests(app.backend.channel, monkeypatch)
    repeated = []
    for place in range(PLACES + 4):
        job = Job(app, queue)
        sent = job.run.enqueue()
        requests.end_at(place)
        before: dict[str, int] = {}
        safe: set[str] = set()
        while app.jobs.get(sent).state is not State.DONE:
            for claimed in driver.claim():
                act = driver.act_of(claimed)
                if requests.has_ended:
                    requests.end_at(None)
                    safe, before = recorded(app, sent.id), dict(job.did)
                else:
                    assert act.verb in (Verb.COMPLETE, Verb.SNOOZE), act.text
                    driver.act(act)
            clock.advance(minutes=10)
            app.signal(job.signal, "yes")
        assert (requests.place is None) is (place < PLACES)
        assert {name: job.did[name] for name in safe if name in before} == {
            name: count for name, count in before.items() if name in safe
        }
        assert set(job.did) == {f"step {number}" for number in range(STEPS)}
        repeated.append(sum(job.did.values()) - STEPS)

    # Only an end between the call of a step and its record repeats that one step.
    assert set(repeated) == {0, 1}
    assert sum(repeated) == STEPS
