"""`penstock pipeline simulate`: on the lake of the demo, without Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.domain.lake.layout import midnight_of
from penstock.domain.limits import DAY
from penstock.edge.cli.kit.sparkline import sparkline
from penstock.edge.cli.main import main
from penstock.pipeline.demo.make import make
from penstock.pipeline.replays import recorded

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo") / "lake"
    make(
        folder,
        messages=20_000,
        days=2,
        first_midnight=midnight_of("2030-01-01"),
        progress=lambda done, total: None,
    )
    return folder


@pytest.fixture
def run(lake: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*words: object, queue: str = "reports", code: int = 0) -> Any:
        capsys.readouterr()
        start = ["pipeline", "simulate", "--lake", str(lake), "--queue", queue]
        assert main([*start, *map(str, words)]) == code
        printed = capsys.readouterr()
        if code:
            return printed.err
        return json.loads(printed.out) if "--json" in words else printed.out

    return run


def test_worker_counts_are_compared_with_their_waits_and_cost(run):
    found = run("--workers", 1, "--workers", 4, "--rate", "2x", "--price", "0.5", "--json")

    one, four = found["simulated"]
    assert (one["workers"], four["workers"]) == (1, 4)
    assert (
        one["messages"]
        == four["messages"]
        == pytest.approx(2 * found["recorded"]["messages"], rel=0.01)
    )
    assert one["wait"]["p95_ms"] > four["wait"]["p95_ms"]
    assert one["backlog_max"] > four["backlog_max"]
    assert one["utilisation"] > four["utilisation"]
    assert four["cost"] == pytest.approx(0.5 * four["worker_hours"], abs=0.01)
    assert (len(one["backlog"]), one["backlog"][0]["at"]) == (60, "2030-01-02T00:00:00.000Z")


def test_people_see_a_table_and_a_picture_of_the_backlog(run):
    text = run("--workers", 2)

    assert text.startswith("reports, 2030-01-02 00:00 to 2030-01-03 00:00: peak concurrency ")
    assert "recorded" in text
    assert "2 workers" in text
    [line] = [line for line in text.splitlines() if "▁" in line]
    assert len(line.split()[0]) == 60


def test_days_are_selectable_and_the_recorded_workers_are_the_default(run):
    first = run("--from", "2030-01-01", "--to", "2030-01-01", "--json")
    both = run("--from", "2030-01-01", "--json")

    assert first["to"] == "2030-01-02T00:00:00.000Z"
    assert first["recorded"]["messages"] < both["recorded"]["messages"]
    [simulated] = both["simulated"]
    assert simulated["workers"] == both["recorded"]["slots"]
    assert simulated["worker_hours"] * 3_600_000 >= 2 * DAY


def test_limits_and_retries_take_the_forms_of_queue_settings(run):
    words = ("--workers", 8, "--json")
    [free] = run(*words, queue="billing")["simulated"]
    [limited] = run(*words, "--max-leased", 1, queue="billing")["simulated"]
    [slow] = run(*words, "--rate-limit", "1/1m", queue="billing")["simulated"]
    [once] = run(*words, "--max-attempts", 1, "--backoff", "fixed:1s", queue="billing")["simulated"]

    assert free["wait"]["max_ms"] < limited["wait"]["max_ms"] < slow["wait"]["max_ms"]
    assert once["dead"] > free["dead"]
    assert once["attempts"] < free["attempts"]


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--rate", "0x"], 2, "'0x' is not a factor such as 2x or 0.5x"),
        (["--price", "much"], 2, "'much' is not a price such as 0.25"),
        (["--from", "2030-01-02", "--to", "2030-01-01"], 1, "--from 2030-01-02 is after --to"),
        (
            ["--from", "2031-01-01", "--to", "2031-01-01"],
            1,
            "no finished messages of queue 'reports'",
        ),
        (["--backoff", "exponential:1s,0"], 1, "backoff.factor must be from 1 to 100"),
        (["--rate-limit", "0/1s"], 1, "rate-limit.limit must be from 1"),
    ],
)
def test_bad_input_is_one_line(run, words, code, text):
    error = run(*words, code=code)

    assert text in error
    assert error.count("\n") == 1


def test_a_queue_with_circuits_gets_a_warning(run, lake, capsys):
    assert run("--json", queue="reports")["not_simulated"] == []
    assert run("--json", queue="hooks")["not_simulated"] == ["circuits"]

    assert main(["pipeline", "simulate", "--lake", str(lake), "--queue", "hooks"]) == 0

    assert capsys.readouterr().err == (
        "penstock: queue 'hooks' uses circuits, which are not simulated: its real waits may be "
        "longer\n"
    )


def test_an_unexpected_error_is_one_line_and_its_traceback_is_shown_on_request(run, monkeypatch):
    def fail(*given: object, **named: object) -> None:
        raise pa.ArrowInvalid("no such type\nnor another")

    monkeypatch.setattr(recorded, "read_queue", fail)

    assert run(code=1) == (
        "penstock: ArrowInvalid: no such type; --verbose shows the details (internal)\n"
    )
    assert "Traceback" in run("--verbose", code=1)


def test_an_unknown_queue_is_reported(run):
    error = run(queue="nothing", code=1)

    assert error == (
        "penstock: the lake has no finished messages of queue 'nothing' (invalid_request)\n"
    )


def test_a_sparkline_shows_shares_of_the_greatest_value():
    assert sparkline([0, 1, 50, 100]) == "▁▂▄█"
    assert sparkline([0, 0]) == "▁▁"
    assert sparkline([]) == ""
