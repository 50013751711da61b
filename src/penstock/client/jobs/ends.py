"""Waiting for jobs to end."""

from __future__ import annotations

from penstock.api import history
from penstock.api.history import Result, WaitForEnd
from penstock.client.backend import Backend
from penstock.client.channel import Ask, Flow, Pause
from penstock.client.jobs.return_value import ReturnValue
from penstock.domain.duration import Duration, as_ms
from penstock.domain.errors import JobFailed
from penstock.domain.message.lifecycle import State
from penstock.ports.clock import Clock

_LONGEST_MS = 10_000  # of one request
_PAUSE_S = 0.5  # after one that was answered early, because the server is stopping


def wait_for_end(
    backend: Backend, clock: Clock, job_id: str, timeout: Duration | None
) -> Flow[Result]:
    """Raises TimeoutError, and MessageNotFound once its history is gone.

    `clock`: that of this machine.
    """
    until = None if timeout is None else clock.now() + as_ms("timeout", timeout)
    longest_ms = _LONGEST_MS
    if backend.limits is not None:
        longest_ms = min(longest_ms, backend.limits.max_wait_ms)
    while True:
        asked_at = clock.now()
        left_ms = longest_ms if until is None else max(until - asked_at, 0)
        wait_ms = min(left_ms, longest_ms) if backend.can_wait else 0
        found: Result = yield Ask(history.RESULT, {"id": job_id}, query=WaitForEnd(wait_ms=wait_ms))
        if found.is_ended:
            return found
        now = clock.now()
        if not backend.can_wait:
            raise TimeoutError(f"job {job_id} is still {found.state}: run it, then wait for it")
        if until is not None and now >= until:
            raise TimeoutError(f"job {job_id} is still {found.state}")
        if now - asked_at < wait_ms // 2:
            yield Pause(_PAUSE_S)


def value_of(found: Result, returns: ReturnValue) -> object:
    """What the job returned; raises JobFailed."""
    if found.state is not State.DONE:
        raise JobFailed(found.id, state=found.state, reason=found.reason, error=found.error)
    return returns.read(found.result)
