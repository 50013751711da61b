"""Service level targets as users write them: `mail wait 5s 99.9; * wait 1m 99; * success 99.5`.

    QUEUE wait DURATION PERCENT      are claimed within that time of being sent
    QUEUE service DURATION PERCENT   are done within that time of their last claim
    QUEUE total DURATION PERCENT     are done within that time of being sent
    QUEUE success PERCENT            do not end up dead

QUEUE is a name or a pattern with `*`; if several match, the first one counts.
"""

from __future__ import annotations

import re
from enum import StrEnum

import msgspec

from penstock.domain.duration import duration_ms, duration_text
from penstock.domain.errors import InvalidRequest

DEFAULT_TARGETS = "* wait 1m 99; * success 99.5"


class Objective(StrEnum):
    WAIT = "wait"
    SERVICE = "service"
    TOTAL = "total"
    SUCCESS = "success"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    queue: str  # a name, or a pattern with *
    objective: Objective
    limit_ms: int | None  # None for success
    percent: float

    @property
    def pattern(self) -> str:
        """A regular expression for the whole name of a queue."""
        return "^" + ".*".join(map(re.escape, self.queue.split("*"))) + "$"

    def __str__(self) -> str:
        limit = "" if self.limit_ms is None else f"{duration_text(self.limit_ms)} "
        return f"{self.queue} {self.objective} {limit}{self.percent:g}"


def read_targets(text: str) -> tuple[Target, ...]:
    """Raises InvalidRequest with the part that cannot be parsed."""
    return tuple(_read(part) for part in text.split(";") if part.strip())


def _read(part: str) -> Target:
    words = part.split()
    objective = words[1] if len(words) > 1 else ""
    has_limit = objective != Objective.SUCCESS
    if objective not in list(Objective) or len(words) != (4 if has_limit else 3):
        raise InvalidRequest(
            f"{part.strip()[:80]!r} is not a target: write QUEUE wait|service|total DURATION "
            "PERCENT, or QUEUE success PERCENT"
        )
    try:
        limit_ms = duration_ms(words[2]) if has_limit else None
        percent = float(words[-1].removesuffix("%"))
    except ValueError as error:
        raise InvalidRequest(f"in the target {part.strip()[:80]!r}: {error}") from None
    if not 0 < percent < 100:
        raise InvalidRequest(
            f"in the target {part.strip()[:80]!r}: the percentage is above 0 and below 100"
        )
    return Target(
        queue=words[0], objective=Objective(objective), limit_ms=limit_ms, percent=percent
    )
