"""Replays the calls of one route and day under all candidates for the breaker's settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.domain.circuit.settings import BreakerSettings, BreakerTask
from penstock.domain.insights.breaker import SETTINGS
from penstock.domain.lake.layout import midnight_of
from penstock.domain.lake.pipeline_settings import PipelineSettings
from penstock.domain.limits import DAY
from penstock.pipeline.replays.breaker import (
    BreakerReplay,
    Interval,
    RouteCall,
    Verdict,
    evaluate,
)
from penstock.pipeline.replays.tuning import Candidate, Survival, candidates, survival

_COUNTS = ("outages", "missed", "unsafe", "opens", "false_opens", "open_ms", "false_open_ms")


class RouteReplay:
    """`header`: dt, route, per_minute, busiest_per_minute (of all routes), load, outages.

    A route without calls on this day has no `per_minute`, and no candidates.
    """

    def __init__(self, header: Mapping[str, Any], settings: PipelineSettings) -> None:
        begins_at = midnight_of(header["dt"])
        self._day = Interval(begins_at, begins_at + DAY)
        self._same = {name: header[name] for name in ("dt", "route", "per_minute")}
        self._outages = [Interval(**one) for one in header["outages"] or ()]
        self._calls = self._failures = 0
        self._load = float(
            header["load"] if settings.breaker_load is None else settings.breaker_load
        )
        self._replays: list[tuple[Candidate, BreakerReplay]] = []
        if header["per_minute"] is not None:
            self._lives = self._survival(header["per_minute"], settings)
            self._replays = self._begin(header["busiest_per_minute"], settings)

    def play(self, calls: Sequence[RouteCall]) -> None:
        """The next calls in order of time; those of the day before come first."""
        for _, replay in self._replays:
            replay.play(calls)
        own = [call for call in calls if call.at >= self._day.from_at]
        self._calls += len(own)
        self._failures += sum(call.is_failure for call in own)

    def rows(self) -> list[dict[str, Any]]:
        return [self._row(candidate, replay) for candidate, replay in self._replays]

    def _begin(
        self, busiest_per_minute: float, settings: PipelineSettings
    ) -> list[tuple[Candidate, BreakerReplay]]:
        found = candidates(
            current_settings(settings),
            self._survival(busiest_per_minute, settings),
            per_minute=busiest_per_minute,
        )
        return [(one, BreakerReplay(one.settings, self._day)) for one in found]

    def _survival(self, per_minute: float, settings: PipelineSettings) -> Survival | None:
        return survival(capacity=settings.breaker_capacity, load=self._load, per_minute=per_minute)

    def _row(self, candidate: Candidate, replay: BreakerReplay) -> dict[str, Any]:
        replayed = replay.result()
        survival_ms = self._lives.ms if self._lives else None
        verdict = evaluate(replayed, self._outages, self._day, survival_ms=survival_ms)
        return {
            **self._same,
            **{name: getattr(candidate.settings, name) for name in SETTINGS},
            "candidate": candidate.name,
            "off_by": candidate.off_by,
            "load": self._load,
            "survival_ms": survival_ms,
            "dies_with": self._lives.active if self._lives else None,
            "calls": self._calls,
            "failures": self._failures,
            **_counts(verdict),
            "reopens": replayed.reopened,
            "held": replayed.held,
            "failed": replayed.failed,
        }


def current_settings(settings: PipelineSettings) -> BreakerSettings:
    return BreakerSettings(
        entries_max_age_ms=settings.breaker_max_age_ms,
        max_queue_sample_count=settings.breaker_max_samples,
        min_queue_sample_count=settings.breaker_min_samples,
        error_threshold_percentage=settings.breaker_threshold_percent,
        open_to_half_open=BreakerTask(interval_ms=settings.breaker_half_open_ms),
    )


def _counts(verdict: Verdict) -> dict[str, int | None]:
    return {
        **{name: getattr(verdict, name) for name in _COUNTS},
        "detection_ms": sum(verdict.delays_ms),
        "detection_max_ms": max(verdict.delays_ms, default=None),
    }
