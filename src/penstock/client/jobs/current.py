"""The job that runs here and now, for its handler to ask and to tell."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from datetime import datetime

import msgspec

from penstock.client.backend import Backing
from penstock.domain.datetimes import moment_of
from penstock.domain.duration import Duration, as_ms
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.lease import Verb
from penstock.ports.work import JobControls, Work, WorkAct
from penstock.services.messages import MAX_PROGRESS_CHARS

_current: ContextVar[Current] = ContextVar("penstock_current")


class Current:
    def __init__(self, work: Work, controls: JobControls, backing: Callable[[], Backing]) -> None:
        self._work = work
        self._controls = controls
        self._backing = backing
        self._is_completed = False
        self.result: object = None

    @property
    def id(self) -> str:
        return self._work.id

    @property
    def queue(self) -> str:
        return self._work.queue

    @property
    def kind(self) -> str | None:
        return self._work.kind

    @property
    def attempts(self) -> int:
        """This one included."""
        return self._work.attempts

    @property
    def max_attempts(self) -> int | None:
        """Its own limit; None: that of its queue counts."""
        return self._work.max_attempts

    @property
    def failures(self) -> int:
        return self._work.failures

    @property
    def group(self) -> str | None:
        return self._work.group

    @property
    def entity_id(self) -> str | None:
        return self._work.entity_id

    @property
    def tags(self) -> tuple[str, ...]:
        return self._work.tags

    @property
    def attributes(self) -> dict[str, str]:
        return self._work.attributes or {}

    @property
    def sent_at(self) -> datetime:
        return moment_of(self._work.sent_at)

    @property
    def deadline(self) -> datetime | None:
        """When it will be stopped, if it has a time limit."""
        at = self._controls.deadline
        return None if at is None else moment_of(at)

    @property
    def is_stopping(self) -> bool:
        """The worker wants to end: a long job may stop at a good place and return Snooze."""
        return self._controls.is_stopping

    @property
    def is_completed(self) -> bool:
        return self._is_completed

    def progress(self, fraction: float | None = None, note: str | None = None) -> None:
        """Tell how far it has come, for those who look; also extends the lease."""
        is_number = isinstance(fraction, int | float) and not isinstance(fraction, bool)
        if fraction is not None and not (is_number and 0 <= fraction <= 1):
            raise InvalidRequest(f"progress is a fraction from 0 to 1, not {fraction!r}")
        if note is not None and not isinstance(note, str):
            raise InvalidRequest(f"note takes a text, not {note!r}")
        told = {"fraction": fraction, "note": note}
        kept = {name: value for name, value in told.items() if value is not None}
        progress = msgspec.json.encode(kept).decode()
        if len(progress) > MAX_PROGRESS_CHARS:
            raise InvalidRequest(f"progress has at most {MAX_PROGRESS_CHARS} characters as JSON")
        self._controls.extend(progress=progress)

    def extend(self, lease: Duration | None = None) -> None:
        """Workers do so by themselves; raises LeaseLost when the job is somebody else's now."""
        self._controls.extend(lease_ms=None if lease is None else as_ms("lease", lease))

    def complete(self, *, tx: object) -> None:
        """Done exactly if the caller's own transaction is committed; raises LeaseLost."""
        self._backing().act_in(tx, self._completion())
        self._is_completed = True

    async def complete_async(self, *, tx: object) -> None:
        await self._backing().act_in_async(tx, self._completion())
        self._is_completed = True

    def set_result(self, result: object) -> None:
        self.result = result

    def _completion(self) -> WorkAct:
        return WorkAct(receipt=self._work.receipt, verb=Verb.COMPLETE)


def current() -> Current:
    """Raises InvalidRequest where no job runs."""
    try:
        return _current.get()
    except LookupError:
        raise InvalidRequest("no job runs here: current() is for handlers") from None


def running_job() -> Current | None:
    """The same for code that is also called where no job runs."""
    return _current.get(None)


class Being:
    """This job is the current one."""

    def __init__(self, job: Current) -> None:
        self._job = job

    def __enter__(self) -> Current:
        self._token = _current.set(self._job)
        return self._job

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)

    async def __aenter__(self) -> Current:
        return self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        with suppress(ValueError):  # the task is destroyed, and this is another context
            self.__exit__()
