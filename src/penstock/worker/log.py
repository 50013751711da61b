"""Log lines of a worker: one per job event, and two per outage of the store."""

from __future__ import annotations

import logging
from collections.abc import Callable

from penstock.domain.errors import LeaseLost, PenstockError
from penstock.domain.message.lease import Verb
from penstock.worker.claimed_job import ClaimedJob, JobAct, StopReason
from penstock.worker.outcomes import NOT_COMMITTED

_log = logging.getLogger("penstock.worker.jobs")
_outage_log = logging.getLogger("penstock.worker")

# Routine events are logged at DEBUG; failures, and jobs given back, at INFO or above.
_EVENTS: dict[Verb, tuple[int, str]] = {
    Verb.COMPLETE: (logging.DEBUG, "done"),
    Verb.FAIL: (logging.WARNING, "failed"),
    Verb.TIME_OUT: (logging.WARNING, "timed out"),
    Verb.CRASH: (logging.ERROR, "crashed its process"),
    Verb.BURY: (logging.WARNING, "buried"),
    Verb.CANCEL: (logging.INFO, "cancelled"),
    Verb.SNOOZE: (logging.DEBUG, "snoozed"),
    Verb.RELEASE: (logging.INFO, "given back"),
}
Report = Callable[[str | None], None]  # why the store does not answer; None: it answers again


class JobLog:
    """Checks the level before formatting a line, which costs as much as a short job."""

    def __init__(self) -> None:
        self._parked: set[str | None] = set()

    def log_end(self, job: ClaimedJob, act: JobAct, *, now: int) -> None:
        level, event = _EVENTS[act.verb]
        if act.verb is Verb.RELEASE and not job.started_at:
            level = logging.DEBUG  # the job keeps its place, and nothing has happened
        if _log.isEnabledFor(level):
            ms = now - job.started_at if job.started_at else 0
            # The headline of the exception: its traceback was logged when it was raised.
            headline = act.text and act.text.partition("\n")[0]
            _write(level, event, job, text=headline, ms=ms)

    def log_parked(self, job: ClaimedJob, act: JobAct) -> None:
        """Log that a job has no handler or unfit arguments: a warning once for each kind."""
        is_new = job.kind not in self._parked
        self._parked.add(job.kind)
        event = "parked" if act.verb is Verb.SNOOZE else _EVENTS[act.verb][1]
        _write(logging.WARNING if is_new else logging.DEBUG, event, job, text=act.text)

    def log_lost_lease(self, job: ClaimedJob) -> None:
        if job.stop_reason is StopReason.LEASE_LOST:
            _write(logging.WARNING, "stopped: it was cancelled, or its lease was lost", job)

    def log_rejection(self, job: ClaimedJob, act: JobAct, error: PenstockError) -> None:
        """Log that the store rejected an act: another worker has the job now, or it has ended."""
        is_expected = act.text == NOT_COMMITTED or act.verb is Verb.TIME_OUT
        is_late = isinstance(error, LeaseLost)
        level = logging.DEBUG if is_expected and is_late else logging.WARNING
        what = "extension" if act.verb is Verb.EXTEND else f"end ({act.verb})"
        _write(level, f"{what} was rejected", job, text=str(error))


def _write(
    level: int, event: str, job: ClaimedJob, *, text: str | None = None, ms: int | None = None
) -> None:
    fields: dict[str, object] = {
        "job": job.id,
        "kind": job.kind,
        "queue": job.queue,
        "attempt": job.attempts,
    }
    if ms is not None:
        fields["ms"] = ms
    line = " ".join(f"{name}={value}" for name, value in fields.items())
    _log.log(
        level, "job %s %s%s", event, line, f": {text}" if text else "", extra={"fields": fields}
    )


def log_outage(error: str | None) -> None:
    if error is None:
        _outage_log.info("connected to the store again")
    else:
        _outage_log.warning("waiting for the store: %s", error)


class OutageReporter:
    """Several parts of a worker ask the store; an outage ends when all of them get answers."""

    def __init__(self, report: Report = log_outage) -> None:
        self._report = report
        self._failing: set[str] = set()

    def begin(self, part: str, error: Exception) -> None:
        if not self._failing:
            self._report(str(error))
        self._failing.add(part)

    def end(self, part: str) -> None:
        if part in self._failing:
            self._failing.remove(part)
            if not self._failing:
                self._report(None)
