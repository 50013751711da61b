"""What a handler may say about its job in place of "done".  Returned or raised, it is the same."""

from __future__ import annotations

from penstock.domain.duration import Duration, as_ms
from penstock.domain.message.draft import check_delay


class Outcome(Exception):
    """Base of all; whatever else a handler returns means that the job is done."""


class Retry(Outcome):
    """This attempt failed; try again after that time, or as the job's back-off says."""

    def __init__(self, after: Duration | None = None, *, error: object = None) -> None:
        super().__init__("to be tried again" if error is None else str(error))
        self.after_ms = None if after is None else check_delay("after", as_ms("after", after))


class Snooze(Outcome):
    """Not now: the job comes back after that time, and this attempt does not count."""

    def __init__(self, delay: Duration) -> None:
        super().__init__(f"snoozed for {delay}")
        self.delay_ms = check_delay("delay", as_ms("delay", delay))


class Cancel(Outcome):
    """Not needed any more: the job ends here, on purpose."""

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(reason or "cancelled by its handler")
        self.reason = reason


class Bury(Outcome):
    """Trying again is of no use: the job is dead at once, whatever attempts are left."""

    def __init__(self, reason: str | None = None) -> None:
        super().__init__(reason or "buried by its handler")
        self.reason = reason


def instance_of(result: object) -> object:
    """The result of a handler; a returned class counts as `raise` counts it: `return Cancel`.

    A class that needs arguments (Snooze) becomes the TypeError of calling it without any.
    """
    if not isinstance(result, type) or not issubclass(result, Outcome):
        return result
    try:
        return result()
    except TypeError as error:
        return error
