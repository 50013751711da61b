"""Rows of the pipeline's tables with defaults, so that a test mentions only what matters to it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from penstock.domain.lake.layout import midnight_of
from penstock.domain.limits import HOUR, MINUTE

DAY_1, DAY_2, DAY_3 = "2030-01-01", "2030-01-02", "2030-01-03"
TEN = midnight_of(DAY_1) + 10 * HOUR

Row = dict[str, Any]


class RowsAsTable:
    """Rows as a table of the lake: the newest day first, and only the columns asked for."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = sorted(rows, key=lambda row: str(row["dt"]), reverse=True)

    def rows(self, *columns: str, **only: Collection[Any]) -> Iterator[Row]:
        for row in self._rows:
            if all(row.get(name) in values for name, values in only.items()):
                yield {name: row.get(name) for name in ("dt", *columns)}


def cost(queue: str | None, **given: Any) -> Row:
    return {
        "dt": DAY_1,
        "route": "/shop/.*",
        "from_at": TEN,
        "to_at": TEN + 90 * MINUTE,
        "queue": queue,
        "tenant": None,
        "messages": 10,
        "late": 0,
        "dead": 0,
        "limit_ms": MINUTE,
        "late_ms": 0,
        "late_max_ms": None,
        **given,
    }


def tuned(candidate: str, **given: Any) -> Row:
    """A replay of the breaker; the baseline is as the defaults are."""
    settings = {
        "entries_max_age_ms": 24 * HOUR,
        "max_queue_sample_count": 5_000,
        "error_threshold_percentage": 90,
        "min_queue_sample_count": 100,
    }
    if candidate != "now":
        settings |= {"entries_max_age_ms": 5 * MINUTE, "max_queue_sample_count": 4_000}
    found = ("unsafe", "missed", "false_opens", "detection_ms", "failed", "open_ms", "off_by")
    more = {"dt": DAY_1, "route": "*", "candidate": candidate, "outages": 1}
    return settings | dict.fromkeys(found, 0) | more | {"detection_max_ms": None} | given


def backtest(candidate: str, **given: Any) -> Row:
    profile = {"samples_needed": 10, "backlog_goal_s": 300, "most_up": 5}
    if candidate != "now":
        profile |= {"samples_needed": 3, "backlog_goal_s": 60}
    return {
        "dt": DAY_1,
        "queue": "mail",
        "candidate": candidate,
        **profile,
        "unfinished": 0,
        "age_p99_ms": 50_000,
        "clear_max_ms": HOUR,
        "workers_max": 4,
        "worker_hours": 10.0,
        "flaps": 0,
        "age_goal_ms": 60_000,
        **given,
    }


def load(queue: str = "*", **given: Any) -> Row:
    return {
        "dt": DAY_1,
        "queue": queue,
        "messages": 100,
        "payload": 1024.0,
        "stored_end": 1024**2,
        "storage_bytes": 1024**3,
        "backlog_growth": None,
        "days_until_full": None,
        "days_offline": None,
        "days_offline_at_peak": None,
        **given,
    }


def kind(day: str, **given: Any) -> Row:
    return {
        "dt": day,
        "queue": "billing",
        "kind": "refund",
        "messages": 100,
        "failing": 85,
        "failing_ratio": 0.85,
        "crashes": 0,
        "common_error": "ValueError: no such currency",
        "is_poison": True,
        **given,
    }


def release(name: str | None, day: str, **given: Any) -> Row:
    return kind(day, release=name, first_at=midnight_of(day)) | given


def starved(**given: Any) -> Row:
    return {
        "dt": DAY_1,
        "pool": '["mail","reports"]',
        "queue": "mail",
        "tenant": None,
        "late": 120,
        "limit_ms": MINUTE,
        "wait_ms": 120 * 5 * MINUTE,
        "wait_max_ms": 9 * MINUTE,
        "own_share": 0.02,
        "by_queue": "reports",
        "by_tenant": "acme",
        "share": 0.98,
        "rank": 1,
        **given,
    }
