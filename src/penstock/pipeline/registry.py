"""Every job by name, in the order in which they run, with the module that holds it as `JOB`.

A new job is a new module and one line here.  Nothing is imported until it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib import import_module

from penstock.domain.errors import InvalidRequest
from penstock.domain.lake.layout import TABLES
from penstock.pipeline.job import Job
from penstock.pipeline.schemas import Derived

HOMES = {
    "quality": "penstock.pipeline.jobs.quality",
    "lifecycle": "penstock.pipeline.jobs.lifecycle",
    "rollups": "penstock.pipeline.jobs.rollups",
    "slo": "penstock.pipeline.jobs.slo",
    "slo_budget": "penstock.pipeline.jobs.slo_budget",
    "poison": "penstock.pipeline.jobs.poison",
    "capacity": "penstock.pipeline.jobs.capacity",
    "breaker_tuning": "penstock.pipeline.jobs.breaker_tuning",
    "scaling_backtest": "penstock.pipeline.jobs.scaling_backtest",
}


def job(name: str) -> Job:
    if name not in HOMES:
        close = get_close_matches(name, HOMES, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(HOMES)}"
        raise InvalidRequest(f"there is no job {name!r}; {hint}")
    found: Job = import_module(HOMES[name]).JOB
    return found


def jobs(names: Iterable[str] = ()) -> list[Job]:
    """Those, and those they need, in the order in which they run; without names all."""
    wanted: set[str] = set()
    ahead = list(names) or list(HOMES)
    while ahead:
        name = ahead.pop()
        if name not in wanted:
            wanted.add(name)
            ahead += job(name).after
            ahead += [maker for table in job(name).inputs if (maker := maker_of(table))]
    return [job(name) for name in HOMES if name in wanted]


@cache
def derived_tables() -> dict[str, Derived]:
    return {o.table.name: o.table for name in HOMES for o in job(name).outputs}


def maker_of(table: str) -> str | None:
    """The job that makes a table; None: it is one of the lake's own."""
    if table in TABLES:
        return None
    return next(n for n in HOMES if any(o.table.name == table for o in job(n).outputs))
