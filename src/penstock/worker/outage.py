"""Outages of the store: reported once when one begins, and once when it ends."""

from __future__ import annotations

import logging
from collections.abc import Callable

_log = logging.getLogger("penstock.worker")

Report = Callable[[str | None], None]  # why the store does not answer; None: it answers again


def log_outage(error: str | None) -> None:
    if error is None:
        _log.info("connected to the store again")
    else:
        _log.warning("waiting for the store: %s", error)


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
