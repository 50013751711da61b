"""What is asked aside: how it is with a fleet, and to have so many workers.

Whatever goes wrong there is an answer, too: it is told, and the next run happens.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

import msgspec

from penstock.domain.errors import PenstockError
from penstock.domain.scaling.fleet_sources import SourceSpec, staging_indicator_of
from penstock.domain.scaling.pressure import Pressure
from penstock.domain.scaling.recommendation import (
    LoadReading,
    Replicas,
    check_reading,
    check_replicas,
    combine,
)
from penstock.ports.scaling import LoadSource, ReplicaManager

SOURCE = "source"  # the parts that may be in trouble
PRESSURE = "pressure"
REPLICAS = "replicas"
COUNT = "count"  # of replicas: it flaps
ANSWERS = "answers"  # they do not come in time
SCALING = "scaling"  # what was decided cannot be done

_log = logging.getLogger("penstock.scaling")

T = TypeVar("T")


class Wrong(msgspec.Struct, frozen=True):
    part: str
    code: str
    text: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    replicas: Replicas | None = None
    sample: LoadReading | None = None
    pressure: Pressure | None = None
    wrong: tuple[Wrong, ...] = ()

    def trouble_of(self, part: str) -> str | None:
        return next((wrong.code for wrong in self.wrong if wrong.part == part), None)


class Fleetside(msgspec.Struct, frozen=True):
    """Whom to ask about one fleet, and for what."""

    queues: tuple[str, ...]
    spec: SourceSpec
    source: LoadSource
    manager: ReplicaManager

    def look(self, *, is_dry: bool, now: int) -> Answer:
        wrong: list[Wrong] = []
        if not is_dry:
            _asked(REPLICAS, lambda: self.manager.tend(now=now), wrong)
        replicas = _asked(REPLICAS, lambda: check_replicas(self.manager.count(now=now)), wrong)
        sample = _asked(SOURCE, lambda: check_reading(self._read(now)), wrong)
        of_pressure: list[Wrong] = []
        pressure = _asked(PRESSURE, lambda: self.source.pressure(now=now), of_pressure)
        wrong += of_pressure if sample is not None else ()  # else it is the same trouble twice
        return Answer(replicas=replicas, pressure=pressure, sample=sample, wrong=tuple(wrong))

    def scale_to(self, wanted: int, *, now: int) -> tuple[Wrong, ...]:
        wrong: list[Wrong] = []
        _asked(REPLICAS, lambda: self.manager.scale_to(wanted, now=now), wrong)
        return tuple(wrong)

    def _read(self, now: int) -> LoadReading:
        """All queues or none: a part of the load would look like less work."""
        indicator = staging_indicator_of(self.spec)
        samples = {name: self.source.read(name, indicator, now=now) for name in self.queues}
        return combine(samples, shares_leased=self.spec.shares_leased)


def _asked(part: str, what: Callable[[], T], wrong: list[Wrong]) -> T | None:
    try:
        return what()
    except PenstockError as error:
        wrong.append(Wrong(part, error.code, str(error)))
    except Exception as error:  # a mistake of ours, or of a library: others must not stand still
        _log.debug("a question about %s failed", part, exc_info=True)
        wrong.append(Wrong(part, "internal", f"{type(error).__name__}: {error}"))
    return None
