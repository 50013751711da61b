"""Metrics of transactions that slow claims down, in Prometheus' text form."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.domain.limits import SECOND
from penstock.domain.queue.problem import OldTransaction
from penstock.edge.metrics.labels import escaped

_OLDEST = "penstock_oldest_transaction_seconds"
_OLD = "penstock_old_transaction_seconds"


def render_transactions(found: Sequence[OldTransaction], *, now: int) -> str:
    return "".join(f"{line}\n" for line in _lines(found, now))


def _lines(found: Sequence[OldTransaction], now: int) -> Iterator[str]:
    ages = [_age_s(one.since, now) for one in found if one.since is not None]
    yield f"# HELP {_OLDEST} Age of the oldest transaction that holds back vacuum."
    yield f"# TYPE {_OLDEST} gauge"
    yield f"{_OLDEST} {max(ages, default=0):.3f}"
    yield f"# HELP {_OLD} Transactions that have held back vacuum for a minute or longer."
    yield f"# TYPE {_OLD} gauge"
    for one in found:
        if one.since is not None and one.is_old(now=now):
            yield f"{_OLD}{{{_labels(one)}}} {_age_s(one.since, now):.3f}"


def _age_s(since: int, now: int) -> float:
    return max(now - since, 0) / SECOND


def _labels(one: OldTransaction) -> str:
    values = {
        "kind": one.kind.value,
        "pid": None if one.pid is None else str(one.pid),
        "name": one.name,
        "application": one.application,
        "user": one.user,
    }
    return ",".join(f'{name}="{escaped(value or "")}"' for name, value in values.items())
