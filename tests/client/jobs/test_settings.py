"""Settings of a store that an application opens in its own process."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from penstock import Penstock
from penstock.client.declared_queues import QueueOptions
from penstock.domain.errors import InvalidRequest, TooLarge
from penstock.domain.queue.queue import QueueSettings
from penstock.domain.queue.rate import Rate
from penstock.testing import Kit

pytestmark = pytest.mark.no_store("embedded")


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def settings_of(**more: Any) -> Any:
    return Penstock("sqlite:///jobs.db", **more).settings("sqlite:///jobs.db")


def test_a_program_sets_what_a_server_can_set_by_key_or_by_section() -> None:
    found = settings_of(
        settings={
            "limits.max_body_bytes": "20MiB",
            "history": {"retention_days": 30},
            "workers.valid_ms": timedelta(minutes=1),
        }
    )

    assert found.limits.max_body_bytes == 20 * 1024 * 1024
    assert found.history.retention_days == 30
    assert found.workers.valid_ms == 60_000
    assert found.queues.auto_create


def test_the_program_wins_over_the_environment_and_that_over_the_config_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("penstock.toml").write_text(
        "[history]\nretention_days = 1\n[samples]\nretention_days = 5\n"
        '[store]\nurl = "sqlite:///other.db"\n[limits]\nmax_claim = 1\n'
    )
    monkeypatch.setenv("PENSTOCK_HISTORY_RETENTION_DAYS", "2")
    monkeypatch.setenv("PENSTOCK_SAMPLES_RETENTION_DAYS", "6")
    monkeypatch.setenv("PENSTOCK_QUEUES_CREATE_LEASE", "5s")  # of a command

    found = settings_of(settings={"history.retention_days": 3})

    assert (found.history.retention_days, found.samples.retention_days) == (3, 6)
    assert found.limits.max_claim == 1
    assert found.store.url == "sqlite:///jobs.db"


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"limits.max_body": 5}, "unknown setting limits.max_body (from settings=)"),
        ({"limits": {"max_body_bytes": 0}}, "limits.max_body_bytes (from settings=) is 0; allowed"),
        ({"history.retention_days": "x"}, "history.retention_days (from settings=) is 'x'"),
    ],
)
def test_a_mistake_is_refused_where_the_application_is_made(given: Any, complaint: str) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(complaint)):
        Penstock("sqlite:///jobs.db", settings=given)


def test_a_larger_body_is_taken_where_the_limit_is_raised() -> None:
    body = {"text": "x" * 2_000_000}
    with Penstock("sqlite:///small.db") as small, pytest.raises(TooLarge):
        small.enqueue("big", body)

    with Penstock("sqlite:///big.db", settings={"limits.max_body_bytes": "4MiB"}) as app:
        app.queue("big", max_body_bytes=3_000_000)
        app.enqueue("big", body, queue="big")
        with Kit(app) as kit:
            app.enqueue("big", body)
            assert len(kit.enqueued("big")) == 1


def test_a_queue_that_wants_larger_bodies_than_the_store_takes_is_refused_with_advice() -> None:
    with Penstock("sqlite:///jobs.db") as app:
        app.queue("big", max_body_bytes=20_000_000)

        with pytest.raises(
            InvalidRequest, match=r"'big': max_body_bytes is 20000000, .*limits\.max_body_bytes"
        ):
            app.enqueue("x", {}, queue="big")


def test_all_settings_of_a_queue_are_typed_keywords() -> None:
    options = get_type_hints(QueueOptions)

    assert {name.removesuffix("_ms") for name in QueueSettings.__struct_fields__} == set(options)


@pytest.mark.parametrize(
    ("given", "rate"),
    [
        ("100/1m", Rate(100, 60_000)),
        ("100/1m,10", Rate(100, 60_000, 10)),
        ({"limit": 5, "per": "2s", "burst": 3}, Rate(5, 2_000, 3)),
        ({"limit": 5, "per": timedelta(hours=1)}, Rate(5, 3_600_000)),
        ({"limit": 5, "per_ms": 2_000}, Rate(5, 2_000)),
        ({"limit": 5}, Rate(5)),
        (Rate(7), Rate(7)),
        (None, None),
    ],
)
def test_a_rate_is_a_text_a_record_or_has_a_duration(given: Any, rate: Rate | None) -> None:
    with Penstock("sqlite:///jobs.db") as app:
        app.queue(
            "calls",
            rate=given,
            rate_per_group=given,
            max_leased=20,
            max_leased_per_group=2,
            is_fair=True,
            weights={"acme": 3},
            max_crashes=None,
        )
        app.enqueue("x", {}, queue="calls")
        broker: Any = app.backend
        found = broker.broker.queues.get("calls").result().queue.settings

    assert (found.rate, found.rate_per_group) == (rate, rate)
    assert (found.max_leased, found.max_leased_per_group) == (20, 2)
    assert (found.is_fair, found.weights, found.max_crashes) == (True, {"acme": 3}, None)


@pytest.mark.parametrize("given", ["100", "x/1m", "100/1m,x", "100/60"])
def test_an_invalid_rate_is_rejected_by_its_name(given: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^rate"):
        Penstock("sqlite:///jobs.db").queue("calls", rate=given)
