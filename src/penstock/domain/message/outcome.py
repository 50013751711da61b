"""Outcomes other than "done" that a handler may return or raise."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.domain.duration import Duration, as_ms
from penstock.domain.message.draft import check_delay


class HandlerOutcome(Exception):
    """Base class; any other return value means that the job is done."""


class Retry(HandlerOutcome):
    """This attempt failed; retry after the given time, or by the job's back-off."""

    def __init__(self, after: Duration | None = None, *, error: object = None) -> None:
        super().__init__("to be tried again" if error is None else str(error))
        self.after_ms = None if after is None else check_delay("after", as_ms("after", after))


class Snooze(HandlerOutcome):
    """Not now: the job becomes due after the given time, and this attempt does not count."""

    def __init__(self, delay: Duration) -> None:
        super().__init__(f"snoozed for {delay}")
        self.delay_ms = check_delay("delay", as_ms("delay", delay))


class Cancel(HandlerOutcome):
    """No longer needed: the job ends here, on purpose."""

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(reason or "cancelled by its handler")
        self.reason = reason


class Bury(HandlerOutcome):
    """Retrying is pointless: the job dies at once, even if attempts are left."""

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(reason or "buried by its handler")
        self.reason = reason


class Suspended(BaseException):
    """The handler has suspended itself in a durable sleep or wait; the job is snoozed.

    Not an Exception, so that `except Exception` in a handler does not swallow it.
    """

    def __init__(self, delay_ms: int, *, signal: str | None = None) -> None:
        super().__init__("suspended" if signal is None else f"waiting for the signal {signal!r}")
        self.delay_ms = delay_ms
        self.signal = signal


def suspension_of(error: object) -> Suspended | None:
    """The suspension that ended a handler; a task group wraps it in a group of exceptions."""
    if isinstance(error, Suspended):
        return error
    if not isinstance(error, BaseExceptionGroup):
        return None
    found, rest = error.split(Suspended)
    if found is None or rest is not None:
        return None
    # Of several suspended tasks, the one that continues first.
    return min(_leaves(found), key=lambda one: one.delay_ms)


def _leaves(group: BaseExceptionGroup[Suspended]) -> Iterator[Suspended]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


def instance_of(result: object) -> object:
    """Return a handler's result; a returned outcome class counts as an instance: `return Cancel`.

    For a class that needs arguments (Snooze) it returns the TypeError of calling it without any.
    """
    if not isinstance(result, type) or not issubclass(result, HandlerOutcome):
        return result
    try:
        return result()
    except TypeError as error:
        return error
