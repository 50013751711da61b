"""The tables of environments: every pair occurs, and every row and every async version is used."""

from __future__ import annotations

import inspect
import re
from itertools import combinations, product
from pathlib import Path

import pytest

from tests.client.calls import CLASSES, twins
from tests.client.environments import (
    CONNECTED,
    CONNECTED_ENVIRONMENTS,
    EVERY_ENVIRONMENT,
    LIMITS,
    NO_STORE,
    Backend,
    Caller,
    Queues,
)

pytestmark = pytest.mark.no_store("this suite")

TESTS = Path(__file__).parents[1]
FOLDERS = (TESTS / "client", TESTS / "testing")


def named(mark: str) -> set[str]:
    """The rows that some test names."""
    texts = [file.read_text() for folder in FOLDERS for file in folder.rglob("*.py")]
    marks = [found for text in texts for found in re.findall(rf"pytest.mark.{mark}\((.*?)\)", text)]
    return {row for given in marks for row in re.findall(r'"(.*?)"', given)}


def test_every_pair_of_store_caller_and_queues_occurs():
    axes = {"backend": Backend, "caller": Caller, "queues": Queues}

    for one, other in combinations(axes, 2):
        pairs = {(getattr(env, one), getattr(env, other)) for env in CONNECTED_ENVIRONMENTS}
        assert pairs == set(product(axes[one], axes[other])), (one, other)
    assert set(CONNECTED) <= set(LIMITS)


def test_every_exception_has_a_reason_excludes_something_and_is_in_use():
    for row, limit in LIMITS.items():
        assert limit.reason, row
        possible = [one for one in EVERY_ENVIRONMENT if limit.is_possible(one)]
        assert 0 < len(possible) < len(EVERY_ENVIRONMENT), row
    assert all(NO_STORE.values())
    assert named("environments") - {"row"} | {"async test"} == set(LIMITS)
    assert named("no_store") - {"row"} == set(NO_STORE)


def test_every_async_form_has_a_sync_twin_with_the_same_parameters():
    found = list(twins())

    assert found
    for owner, name in found:
        sync, twin = (inspect.signature(getattr(owner, n)) for n in (name, f"{name}_async"))
        assert list(sync.parameters) == list(twin.parameters), f"{owner.__name__}.{name}"


def test_no_call_of_the_client_is_left_out_of_the_comparison():
    """A public method is sync with an async version, or is listed here with a reason."""
    compared = {(owner, name) for owner, name in twins()}
    left = {
        f"{owner.__name__}.{name}"
        for owner in CLASSES
        for name, found in inspect.getmembers(owner, inspect.isfunction)
        if not name.startswith("_")
        and not name.endswith("_async")
        and (owner, name) not in compared
    }

    assert left == set(WITHOUT_ASYNC_FORM)


WITHOUT_ASYNC_FORM = {
    **dict.fromkeys(
        (
            "Enqueuing.args",
            "Enqueuing.bind",
            "Enqueuing.using",
            "NotificationQueue.handler",
            "Penstock.around",
            "Penstock.batch",
            "Penstock.declared",
            "Penstock.flow",
            "Penstock.flow_by_id",
            "Penstock.job",
            "Penstock.notifications",
            "Penstock.queue",
            "Penstock.queue_at_least",
            "Penstock.settings",
            "Penstock.substitute",
            "Penstock.subscribe",
            "Penstock.use",
            "Node.ended",
            "Node.record",
            "Node.failed",
            "Steps.place",
            "Steps.then",
            "FlowBuilder.place",
            "JobBatch.place",
        ),
        "declares or computes, and asks no store",
    ),
    **dict.fromkeys(
        (
            "Penstock.on_worker_start",
            "Penstock.on_worker_stop",
            "Penstock.queue_names",
            "Penstock.registry",
            "Penstock.run_worker",
            "Penstock.start_duties",
            "Penstock.job_source",
            "Penstock.worker",
        ),
        "is for workers, which have threads of their own",
    ),
    **dict.fromkeys(("Penstock.breaker", "Penstock.migrate"), "is for operators, once"),
    **dict.fromkeys(
        ("Penstock.apply_declared", "Penstock.run_blocking", "Node.enqueued"),
        "is for other parts of the client",
    ),
    **dict.fromkeys(
        (
            "Kit.advance",
            "Kit.assert_enqueued",
            "Kit.assert_not_enqueued",
            "Kit.close",
            "Kit.ended",
            "Kit.enqueued",
            "Kit.inline",
            "Kit.perform",
            "Kit.steps",
        ),
        "works inside a running event loop, where a test may wait",
    ),
}
