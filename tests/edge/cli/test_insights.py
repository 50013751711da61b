"""`penstock insights`: answers in words, and advice applied with its back-test."""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.edge.cli.main import main
from tests.edge.api import Api, ok
from tests.edge.cli.conftest import Run
from tests.edge.live import LiveServer
from tests.edge.pipeline_tables import write_tuning


@pytest.fixture(autouse=True)
def _tuning(server: LiveServer, api: Api) -> Iterator[Path]:
    folder = Path(server.broker.settings.insights_folder)
    write_tuning(folder, "2031-01-01")
    yield folder
    shutil.rmtree(folder)
    ok(api.call("DELETE", "/v1/breaker"))


def test_all_questions_are_answered_in_words(cli: Run) -> None:
    shown = cli("insights").out

    assert "What did the outage cost?  (outage)" in shown
    assert "For all routes: samples of the last 5 min (from 100 to 4,000)" in shown
    assert [one["name"] for one in cli("insights", "--json").records][:2] == ["outage", "breaker"]


def test_a_dry_run_shows_the_back_test_and_changes_nothing(cli: Run, api: Api) -> None:
    shown = cli("insights", "apply", "breaker", "*", "--dry-run").out

    assert "calls that fail" in shown
    assert "900" in shown
    assert "2 min" in shown
    assert api.get("/v1/breaker")["error_threshold_percentage"] == 90


def test_advice_is_applied(cli: Run, api: Api) -> None:
    shown = cli("insights", "apply", "breaker", "*").out

    assert "the recommended settings are in force" in shown
    assert api.get("/v1/breaker")["error_threshold_percentage"] == 70
    again = cli("insights", "apply", "breaker", "*")
    assert again.code == 1
    assert "These settings are in force. (advice_outdated)" in again.err


class _User(io.StringIO):
    """Standard input with an answer, from a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "words", "threshold"),
    [("n\n", (), 90), ("\n", (), 90), ("", (), 90), ("y\n", (), 70), ("n\n", ("--yes",), 70)],
)
def test_on_a_terminal_nothing_changes_before_it_is_confirmed(
    server: LiveServer,
    api: Api,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    answer: str,
    words: tuple[str, ...],
    threshold: int,
) -> None:
    monkeypatch.setattr("sys.stdin", _User(answer))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)

    code = main(["insights", "apply", "breaker", "*", "--server", server.url, *words])

    shown = capsys.readouterr()
    assert api.get("/v1/breaker")["error_threshold_percentage"] == threshold
    assert code == (1 if threshold == 90 else 0)
    assert "calls that fail" in shown.out
    assert ("Apply this to *? [y/N] " in shown.err) == (not words)
    assert ("nothing was changed" in shown.err) == (threshold == 90)


def test_a_target_without_advice_is_named_with_those_that_have_some(cli: Run) -> None:
    refused = cli("insights", "apply", "breaker", "/nowhere")

    assert refused.code == 1
    assert "no advice on '/nowhere'; targets: *" in refused.err
