"""Tables of the pipeline that answer its questions, for the pictures of the docs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from penstock.domain.lake.layout import midnight_of
from penstock.domain.limits import HOUR
from tests.domain.insights.rows import cost, kind, starved
from tests.edge.pipeline_tables import without_day, write_backtest, write_day, write_tuning


def write_answers(folder: Path) -> None:
    last = "2030-02-28"
    losses = (
        ("thumbnails", "acme", 1_840, 12),
        ("thumbnails", "globex", 420, 3),
        ("mail", None, 95, 0),
    )
    costs = [
        cost(
            queue,
            tenant=tenant,
            late=late,
            dead=dead,
            late_ms=late * 1_900_000,
            late_max_ms=5_400_000,
            from_at=midnight_of(last) + 10 * HOUR,
            to_at=midnight_of(last) + 11 * HOUR,
        )
        for queue, tenant, late, dead in losses
    ]
    write_day(folder, "outage_cost", last, [without_day(one) for one in costs])
    write_tuning(folder, last, "*", "/shop/.*")
    write_backtest(folder, last, "mail")
    waits = starved(
        queue="mail", by_queue="thumbnails", by_tenant="acme", share=0.82, own_share=0.06
    )
    write_day(folder, "starvation", last, [without_day(waits)])
    for day in range(20, 29):
        share = 0.02 if day < 24 else 0.61 + day / 400
        failing = kind(last, queue="mail", kind="welcome", failing=int(900 * share), messages=900)
        failing |= {"failing_ratio": share, "is_poison": share > 0.2}
        write_day(folder, "poison_kinds", f"2030-02-{day}", [without_day(failing)])
        running = {
            "release": "2.3.1" if day < 24 else "2.4.0",
            "first_at": midnight_of(f"2030-02-{day}"),
        }
        write_day(folder, "poison_releases", f"2030-02-{day}", [without_day(failing | running)])


def storage(day: int) -> dict[str, Any]:
    """All queues together: a backlog that grows a little every day."""
    return {
        "queue": "*",
        "messages": 150_000,
        "payload": 2_000.0,
        "stored_end": 400_000_000 + day * 21_000_000,
        "storage_bytes": 2_000_000_000,
        "backlog_growth": 10_500.0,
        "days_until_full": (1_600_000_000 - day * 21_000_000) / 21_000_000,
        "days_offline": 3.4,
    }
