"""Answers over HTTP, and advice that is applied only while it still holds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.domain.access.api_key import Role
from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.scaling.recommendation import Profile
from tests.domain.insights.rows import backtest
from tests.edge.api import Api, assert_refused, ok
from tests.edge.live import LiveServer
from tests.edge.native.conftest import LetIn
from tests.edge.pipeline_tables import without_day, write_backtest, write_day, write_tuning
from tests.factories import a_fleet_status

ROUTE = "/shop/(.*)"
CIRCUIT = f"/v1/circuits/{circuit_hash(ROUTE)}/settings"


@pytest.fixture
def folder(server: LiveServer) -> Iterator[Path]:
    found = Path(server.broker.settings.insights_folder)
    yield found
    shutil.rmtree(found, ignore_errors=True)


@pytest.fixture
def _breaker(api: Api, folder: Path) -> Iterator[None]:
    write_tuning(folder, "2031-01-01", "*", ROUTE)
    yield
    ok(api.call("DELETE", "/v1/breaker"))
    for one in api.get("/v1/circuits/settings")["circuits"]:
        ok(api.call("DELETE", f"/v1/circuits/{one['circuit']}/settings"))


@pytest.fixture
def _fleet(api: Api, server: LiveServer, folder: Path) -> Iterator[None]:
    write_backtest(folder, "2031-01-01")
    scaling, now = server.broker.scaling, server.clock.now()
    scaling.save_tick([a_fleet_status("mail", file_profile=Profile())], now=now).result()
    yield
    ok(api.call("DELETE", "/v1/scaling/mail/profile"))
    scaling.save_tick([], gone=["mail"], now=now).result()


def advice_on(api: Api, question: str, target: str) -> dict[str, Any]:
    advice = api.get(f"/v1/answers/{question}")["advice"]
    [found] = [one for one in advice if one["target"] == target]
    return dict(found)


def apply(api: Api, question: str, advice: dict[str, Any]) -> Any:
    body = {name: advice[name] for name in ("target", "settings", "before")}
    return api.call("POST", f"/v1/answers/{question}/apply", body)


def test_without_tables_every_question_has_an_answer_that_says_so(api: Api, folder: Path) -> None:
    answers = api.get("/v1/answers")["answers"]

    assert [one["name"] for one in answers] == [
        "outage",
        "breaker",
        "fleet",
        "storage",
        "poison",
        "starvation",
    ]
    assert all("Not computed yet" in one["sentences"][0] for one in answers)


def test_a_table_without_rows_is_an_answer_and_not_a_missing_table(api: Api, folder: Path) -> None:
    write_day(folder, "slo", "2031-01-01", [{"queue": "mail", "bad": 1}])
    (folder / "outage_cost").mkdir()

    assert api.get("/v1/answers/outage")["sentences"] == ["No outages in this period."]
    assert "Not computed yet" in api.get("/v1/answers/storage")["sentences"][0]


def test_answers_come_from_the_newest_four_weeks_or_from_given_days(api: Api, folder: Path) -> None:
    row = {"queue": "*", "storage_bytes": None, "stored_end": 1024}
    for day in ("2031-01-01", "2031-02-01"):
        write_day(folder, "capacity", day, [row])
    poison = {"queue": "q", "messages": 2, "failing": 2, "failing_ratio": 1.0, "is_poison": True}
    write_day(folder, "poison_kinds", "2031-01-01", [poison | {"kind": "old"}])
    (folder / "poison_releases").mkdir()

    assert "at the end of 2031-02-01" in api.get("/v1/answers/storage")["sentences"][1]
    assert api.get("/v1/answers/poison")["sentences"] == ["No poison kinds in this period."]
    earlier = api.get("/v1/answers/poison", from_day="2031-01-01", to_day="2031-01-31")
    assert earlier["sentences"][0].startswith("old (queue q): poison since 2031-01-01.")


def test_unknown_questions_and_days_are_refused(api: Api, folder: Path) -> None:
    write_day(folder, "slo", "2031-01-01", [{"bad": 1}])

    assert_refused(api.call("GET", "/v1/answers/weather"), 404, "question_not_found")
    for query in ("from_day=today", "to_day=2031-1-1"):
        refused = api.call("GET", f"/v1/answers/outage?{query}")
        assert_refused(refused, 400, "invalid_request")


def test_without_pyarrow_it_says_so(
    api: Api, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_day(folder, "slo", "2031-01-01", [{"bad": 1}])
    monkeypatch.setattr("penstock.outbound.table_files.find_spec", lambda name: None)

    refused = api.call("GET", "/v1/answers")

    assert "penstock-queue[archive]" in assert_refused(refused, 400, "invalid_request")


def test_every_row_of_a_large_day_counts(api: Api, folder: Path) -> None:
    queues = [f"queue-{n:04}" for n in range(4_500)]
    names = [("now", 10, 300), *((f"{goal}s", 3, goal) for goal in range(10, 121, 10))]
    rows = [
        without_day(
            backtest(name, samples_needed=samples, backlog_goal_s=goal, worker_hours=goal / 10)
        )
        | {"queue": queue}
        for queue in queues
        for name, samples, goal in names
    ]
    assert len(rows) > 50_000
    write_day(folder, "scaling_backtest", "2031-01-01", rows)

    answer = api.get("/v1/answers/fleet")

    assert answer["sentences"] == [
        "For queue-0000, queue-0001, queue-0002, queue-0003, queue-0004 and 4,495 more: "
        "backlog_goal_s = 10, samples_needed = 3, most_up = 5. On 1 recorded day it would have "
        "used 4,500 worker hours instead of 135,000 (97 % less), and claimed 99 of 100 messages "
        "within 50 s on the worst day, as before."
    ]


@pytest.mark.usefixtures("_breaker")
def test_advice_on_the_breaker_changes_its_defaults_and_is_recorded(api: Api) -> None:
    advice = advice_on(api, "breaker", "*")
    assert advice["before"]["error_threshold_percentage"] == 90
    missed = next(one for one in advice["backtest"] if one["name"] == "outages missed")
    assert (missed["before"], missed["after"]) == (1, 0)

    applied = ok(apply(api, "breaker", advice))

    assert applied == {"target": "*", "settings": advice["settings"]}
    settings = api.get("/v1/breaker")
    assert {name: settings[name] for name in advice["settings"]} == advice["settings"]
    assert api.get("/v1/facts", kind="breaker_changed", limit="1")["facts"] != []
    assert advice_on(api, "breaker", "*")["refusal"] == "These settings are in force."


@pytest.mark.usefixtures("_breaker")
def test_advice_on_a_route_overrides_the_settings_of_its_circuit_only(api: Api) -> None:
    ok(apply(api, "breaker", advice_on(api, "breaker", ROUTE)))

    assert api.get(CIRCUIT, route=ROUTE)["overrides"]["error_threshold_percentage"] == 70
    assert api.get("/v1/breaker")["error_threshold_percentage"] == 90


@pytest.mark.usefixtures("_breaker")
def test_advice_is_refused_once_the_settings_have_changed(api: Api) -> None:
    ours, theirs = advice_on(api, "breaker", ROUTE), advice_on(api, "breaker", "*")
    path = f"{CIRCUIT}?route={ROUTE}"
    ok(api.call("PATCH", path, {"error_threshold_percentage": 1}))
    ok(api.call("PATCH", "/v1/breaker", {"entries_max_age_ms": 1}))

    for advice in (ours, theirs):
        assert_refused(apply(api, "breaker", advice), 409, "advice_outdated")

    assert api.get("/v1/breaker")["error_threshold_percentage"] == 90
    unknown = advice_on(api, "breaker", "*")
    assert unknown["refusal"].startswith("The settings in force were not replayed")
    assert_refused(apply(api, "breaker", unknown), 409, "advice_outdated")


@pytest.mark.usefixtures("_breaker")
def test_advice_is_refused_once_it_has_changed_itself(api: Api, folder: Path) -> None:
    advice = advice_on(api, "breaker", "*")
    write_tuning(folder, "2031-01-01", "*", threshold=50)

    assert_refused(apply(api, "breaker", advice), 409, "advice_outdated")
    assert_refused(apply(api, "breaker", advice | {"target": "/nowhere"}), 409, "advice_outdated")
    assert_refused(apply(api, "outage", advice), 409, "advice_outdated")


@pytest.mark.usefixtures("_fleet")
def test_advice_on_a_fleet_overrides_its_profile_until_it_is_reset(api: Api) -> None:
    advice = advice_on(api, "fleet", "mail")

    ok(apply(api, "fleet", advice))

    profile = api.get("/v1/scaling/mail/profile")
    assert profile["overrides"] == advice["settings"]
    assert profile["settings"]["backlog_goal_s"] == 60
    facts = api.get("/v1/facts", kind="scaling_profile_changed", subject="mail")["facts"]
    assert advice["settings"] in [fact["data"] for fact in facts]
    assert advice_on(api, "fleet", "mail")["refusal"] == "This profile is in force."
    ok(api.call("DELETE", "/v1/scaling/mail/profile"))
    assert api.get("/v1/scaling/mail/profile")["settings"]["backlog_goal_s"] == 300


@pytest.mark.usefixtures("_fleet")
def test_a_profile_that_has_changed_since_is_not_overwritten(api: Api) -> None:
    advice = advice_on(api, "fleet", "mail")
    ok(api.call("PATCH", "/v1/scaling/mail/profile", {"most_up": 7}))

    assert_refused(apply(api, "fleet", advice), 409, "advice_outdated")

    assert api.get("/v1/scaling/mail/profile")["overrides"] == {"most_up": 7}


@pytest.mark.usefixtures("_fleet")
def test_invalid_settings_of_a_profile_are_refused(api: Api) -> None:
    for body in ({"most_up": 0}, {"backlog_goal_s": 0}, {"max": 5}, {"samples_needed": "3"}):
        refused = api.call("PATCH", "/v1/scaling/mail/profile", body)
        assert_refused(refused, 400, "invalid_request")
    assert_refused(api.call("GET", "/v1/scaling/post/profile"), 404, "fleet_not_found")


def test_a_key_for_some_queues_sees_no_answers(let_in: LetIn) -> None:
    some = let_in(Role.READ, queues=("mail*",))

    for path in ("/v1/answers", "/v1/answers/outage"):
        assert_refused(some.call("GET", path), 403, "forbidden")
