"""All jobs by name, in the order in which they run, with the module that defines each as `JOB`.

A new job is a new module and one line here.  Nothing is imported until it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from importlib import import_module

from penstock.domain.errors import InvalidRequest
from penstock.domain.lake.layout import TABLES
from penstock.pipeline.job import PipelineJob
from penstock.pipeline.schemas import ComputedTable

MODULES = {
    "quality": "penstock.pipeline.jobs.quality",
    "lifecycle": "penstock.pipeline.jobs.lifecycle",
    "rollups": "penstock.pipeline.jobs.rollups",
    "slo": "penstock.pipeline.jobs.slo",
    "slo_budget": "penstock.pipeline.jobs.slo_budget",
    "known_workers": "penstock.pipeline.jobs.known_workers",
    "flow_facts": "penstock.pipeline.jobs.flow_facts",
    "poison": "penstock.pipeline.jobs.poison",
    "capacity": "penstock.pipeline.jobs.capacity",
    "outage_cost": "penstock.pipeline.jobs.outage_cost",
    "starvation": "penstock.pipeline.jobs.starvation",
    "breaker_tuning": "penstock.pipeline.jobs.breaker_tuning",
    "scaling_backtest": "penstock.pipeline.jobs.scaling_backtest",
}


def job(name: str) -> PipelineJob:
    if name not in MODULES:
        close = get_close_matches(name, MODULES, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(MODULES)}"
        raise InvalidRequest(f"there is no job {name!r}; {hint}")
    found: PipelineJob = import_module(MODULES[name]).JOB
    return found


def jobs(names: Iterable[str] = ()) -> list[PipelineJob]:
    """The named jobs and those they need, in the order in which they run; all jobs by default."""
    wanted: set[str] = set()
    ahead = list(names) or list(MODULES)
    while ahead:
        name = ahead.pop()
        if name not in wanted:
            wanted.add(name)
            ahead += _needed_by(job(name))
    return [job(name) for name in MODULES if name in wanted]


def all_needed_by(one: PipelineJob) -> set[str]:
    """The jobs that this one depends on, and those that they depend on."""
    return {needed.name for name in _needed_by(one) for needed in jobs([name])}


@cache
def computed_tables() -> dict[str, ComputedTable]:
    return {o.table.name: o.table for name in MODULES for o in job(name).outputs}


def job_of(table: str) -> str | None:
    """The job that computes a table; None: it is a table of the lake."""
    if table in TABLES:
        return None
    return next(n for n in MODULES if any(o.table.name == table for o in job(n).outputs))


@cache
def read_tables() -> frozenset[str]:
    """The tables that jobs read."""
    return frozenset(table for name in MODULES for table in job(name).inputs)


def _needed_by(one: PipelineJob) -> list[str]:
    return [*one.after, *(needed for table in one.inputs if (needed := job_of(table)))]
