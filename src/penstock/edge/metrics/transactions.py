"""Metrics of long-running transactions, which slow claims down."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.domain.limits import SECOND
from penstock.domain.queue.problem import OldTransaction
from penstock.edge.metrics.text import family


def render_transactions(found: Sequence[OldTransaction], *, now: int) -> str:
    ages = [(one, max(now - one.since, 0) / SECOND) for one in found if one.since is not None]
    oldest = max((age for _, age in ages), default=0)
    lines = [
        *family(
            "penstock_oldest_transaction_seconds",
            "Age of the oldest transaction that holds back vacuum.",
            [({}, f"{oldest:.3f}")],
        ),
        *family(
            "penstock_old_transaction_seconds",
            "Age of each transaction that has held back vacuum for a minute or longer.",
            ((_labels(one), f"{age:.3f}") for one, age in ages if one.is_old(now=now)),
        ),
    ]
    return "".join(lines)


def _labels(one: OldTransaction) -> dict[str, str]:
    return {
        "kind": one.kind.value,
        "pid": "" if one.pid is None else str(one.pid),
        "name": one.name or "",
        "application": one.application or "",
        "user": one.user or "",
    }
