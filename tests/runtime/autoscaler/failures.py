"""Failures that the tests of sources and of replica managers share."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from penstock.domain.errors import (
    ReplicasUnavailable,
    SourceUnavailable,
)
from tests.runtime.autoscaler.driver import AtOnce, AutoscalerDriver, Slow

T = TypeVar("T")
DOWN = SourceUnavailable("rabbit does not answer")
LOST = ReplicasUnavailable("the cluster does not answer")


class EverySecondSlow(Slow):
    times = 0

    def begin(self, name: str, what: Callable[[], T]) -> Future[T]:
        self.times += 1
        return super().begin(name, what) if self.times % 2 == 0 else AtOnce().begin(name, what)


def troubles(driver: AutoscalerDriver, name: str = "mail") -> list[str]:
    return [fact["code"] for fact in driver.facts("scaling_trouble", name)]


def recoveries(driver: AutoscalerDriver, name: str = "mail") -> list[dict[str, Any]]:
    return driver.facts("scaling_recovered", name)
