"""One line for everything that happens to a job; `extra` has the same for programs."""

from __future__ import annotations

import logging

from penstock.domain.errors import LeaseLost, PenstockError
from penstock.domain.message.lease import Verb
from penstock.ports.work import Work, WorkAct
from penstock.worker.outcomes import NOT_COMMITTED
from penstock.worker.running_job import Fate, Held

_log = logging.getLogger("penstock.worker.jobs")

# What does not end well, or not yet, is worth a line in any log.
_WORDS: dict[Verb, tuple[int, str]] = {
    Verb.COMPLETE: (logging.DEBUG, "done"),
    Verb.FAIL: (logging.WARNING, "failed"),
    Verb.TIME_OUT: (logging.WARNING, "timed out"),
    Verb.CRASH: (logging.ERROR, "crashed its process"),
    Verb.BURY: (logging.WARNING, "buried"),
    Verb.CANCEL: (logging.INFO, "cancelled"),
    Verb.SNOOZE: (logging.DEBUG, "snoozed"),
    Verb.RELEASE: (logging.INFO, "given back"),
}


class JobLog:
    """Asks once for each turn whether anybody reads: a line costs as much as a job."""

    def __init__(self) -> None:
        self._parked: set[str | None] = set()

    def ended(self, held: Held, act: WorkAct, *, now: int) -> None:
        level, word = _WORDS[act.verb]
        if act.verb is Verb.RELEASE and not held.started_at:
            level = logging.DEBUG  # it keeps its place, and nothing has happened
        if _log.isEnabledFor(level):
            ms = now - held.started_at if held.started_at else 0
            # Of an exception the headline: its traceback was logged when it was raised.
            headline = act.text and act.text.partition("\n")[0]
            _say(level, word, held.work, text=headline, ms=ms)

    def parked(self, work: Work, act: WorkAct) -> None:
        """No handler, or arguments that do not fit: told once for each kind."""
        is_new = work.kind not in self._parked
        self._parked.add(work.kind)
        word = "parked" if act.verb is Verb.SNOOZE else _WORDS[act.verb][1]
        _say(logging.WARNING if is_new else logging.DEBUG, word, work, text=act.text)

    def stopped(self, held: Held) -> None:
        if held.fate is Fate.LOST:
            _say(logging.WARNING, "stopped: its lease was lost", held.work)

    def refused(self, held: Held, act: WorkAct, error: PenstockError) -> None:
        """The store did not take how it ended; it is somebody else's now, or was ended already."""
        is_expected = act.text == NOT_COMMITTED or act.verb is Verb.TIME_OUT
        is_late = isinstance(error, LeaseLost)
        level = logging.DEBUG if is_expected and is_late else logging.WARNING
        what = "its extension" if act.verb is Verb.EXTEND else f"its end ({act.verb})"
        _say(level, f"{what} was not taken", held.work, text=str(error))


def _say(level: int, word: str, work: Work, *, text: str | None = None, ms: int = 0) -> None:
    fields = {
        "job": work.id,
        "kind": work.kind,
        "queue": work.queue,
        "attempt": work.attempts,
        "ms": ms,
    }
    line = " ".join(f"{name}={value}" for name, value in fields.items())
    _log.log(
        level, "job %s %s%s", word, line, f": {text}" if text else "", extra={"fields": fields}
    )
