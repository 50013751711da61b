"""Calls to a fleet's load source and replica manager; they run in the background.

A failure is part of the result: it is reported, and does not stop the next run.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol, TypeVar

import msgspec

from penstock.domain.errors import PenstockError
from penstock.domain.scaling.fleet_sources import SourceSpec, staging_indicator_of
from penstock.domain.scaling.pressure import Pressure
from penstock.domain.scaling.recommendation import (
    Replicas,
    Sample,
    check_reading,
    check_replicas,
    combine,
)
from penstock.ports.scaling import LoadSource, ReplicaManager

T = TypeVar("T")

_log = logging.getLogger("penstock.scaling")
SOURCE = "source"  # the parts that may fail
PRESSURE = "pressure"
REPLICAS = "replicas"
COUNT = "count"  # the number of replicas flaps
ANSWERS = "answers"  # they do not arrive in time
SCALING = "scaling"  # a decision could not be carried out


class Background(Protocol):
    def begin(self, name: str, what: Callable[[], T]) -> Future[T]: ...


class BackgroundThreads:
    """Runs each call in a thread of its own.

    There is no pool, in which calls that hang would block all others.  There is at most one thread
    per fleet, and it ends with the process.
    """

    def begin(self, name: str, what: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()
        thread = threading.Thread(
            target=_run, args=(what, future), name=f"penstock-fleet-{name}", daemon=True
        )
        thread.start()
        return future


def _run(what: Callable[[], T], future: Future[T]) -> None:
    try:
        future.set_result(what())
    except BaseException as error:
        future.set_exception(error)


class PartFailure(msgspec.Struct, frozen=True):
    part: str
    code: str
    text: str


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    replicas: Replicas | None = None
    sample: Sample | None = None
    pressure: Pressure | None = None
    failures: tuple[PartFailure, ...] = ()

    def trouble_of(self, part: str) -> str | None:
        return next((failures.code for failures in self.failures if failures.part == part), None)


class FleetAccess(msgspec.Struct, frozen=True):
    """The source and the manager of one fleet, with the queues to read."""

    queues: tuple[str, ...]
    spec: SourceSpec
    source: LoadSource
    manager: ReplicaManager

    def observe(self, *, is_dry: bool, now: int) -> Observation:
        failures: list[PartFailure] = []
        if not is_dry:
            _call(REPLICAS, lambda: self.manager.maintain(now=now), failures)
        replicas = _call(REPLICAS, lambda: check_replicas(self.manager.count(now=now)), failures)
        sample = _call(SOURCE, lambda: check_reading(self._read(now)), failures)
        of_pressure: list[PartFailure] = []
        pressure = _call(PRESSURE, lambda: self.source.pressure(now=now), of_pressure)
        failures += of_pressure if sample is not None else ()  # else the same failure twice
        return Observation(
            replicas=replicas, pressure=pressure, sample=sample, failures=tuple(failures)
        )

    def scale_to(self, wanted: int, *, now: int) -> tuple[PartFailure, ...]:
        failures: list[PartFailure] = []
        _call(REPLICAS, lambda: self.manager.scale_to(wanted, now=now), failures)
        return tuple(failures)

    def _read(self, now: int) -> Sample:
        """Read all queues or none: part of the load would look like less work."""
        indicator = staging_indicator_of(self.spec)
        samples = {name: self.source.read(name, indicator, now=now) for name in self.queues}
        return combine(samples, shares_leased=self.spec.shares_leased)


def _call(part: str, what: Callable[[], T], failures: list[PartFailure]) -> T | None:
    try:
        return what()
    except PenstockError as error:
        failures.append(PartFailure(part, error.code, str(error)))
    except Exception as error:  # a bug, ours or a library's, must not stop the other fleets
        _log.debug("the call for %s failed", part, exc_info=True)
        failures.append(PartFailure(part, "internal", f"{type(error).__name__}: {error}"))
    return None
