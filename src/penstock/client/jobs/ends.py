"""Waiting for jobs to end."""

from __future__ import annotations

from penstock.api import history
from penstock.api.history import Result, WaitForEnd
from penstock.client.backend import Backend
from penstock.client.channel import Ask, Flow
from penstock.client.long_poll import long_poll
from penstock.client.values.return_value import ReturnValue
from penstock.domain.duration import Duration
from penstock.domain.errors import JobFailed
from penstock.domain.message.lifecycle import State
from penstock.ports.clock import Clock


def wait_for_end(
    backend: Backend, clock: Clock, job_id: str, timeout: Duration | None
) -> Flow[Result]:
    """Raises TimeoutError, and MessageNotFound once its history is gone."""

    def ask(wait_ms: int) -> Ask:
        return Ask(history.RESULT, {"id": job_id}, query=WaitForEnd(wait_ms=wait_ms))

    def what_runs(found: Result) -> str | None:
        if found.is_ended:
            return None
        hint = "" if backend.can_wait else ": run it, then wait for it"
        return f"job {job_id} is still {found.state}{hint}"

    return long_poll(backend, clock, timeout, ask=ask, what_runs=what_runs)


def value_of(found: Result, returns: ReturnValue) -> object:
    """What the job returned; raises JobFailed."""
    if found.state is not State.DONE:
        raise JobFailed(found.id, state=found.state, reason=found.reason, error=found.error)
    return returns.read(found.result)
