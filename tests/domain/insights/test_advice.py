"""Advice on breakers and fleets: what is recommended, against what, with which back-test."""

from __future__ import annotations

from penstock.domain.insights.answer import Answer, CurrentState, SettingsInForce
from penstock.domain.insights.questions import QUESTIONS, answer
from penstock.domain.limits import HOUR, MINUTE
from tests.domain.insights.rows import DAY_1, DAY_2, DAY_3, Row, RowsAsTable, backtest, tuned


def ask(name: str, rows: list[Row], in_force: list[SettingsInForce] | None = None) -> Answer:
    return answer(
        QUESTIONS[name],
        {QUESTIONS[name].tables[0]: RowsAsTable(rows)},
        CurrentState(in_force=in_force),
    )


def settings_of(row: Row, *names: str) -> dict[str, int]:
    return {name: row[name] for name in names}


BREAKER = (
    "entries_max_age_ms",
    "max_queue_sample_count",
    "error_threshold_percentage",
    "min_queue_sample_count",
)
PROFILE = ("samples_needed", "backlog_goal_s", "most_up")


def test_the_settings_that_detect_outages_are_recommended_with_what_they_would_have_done() -> None:
    found = ask(
        "breaker",
        [
            tuned("now", missed=1, failed=900),
            tuned("now", dt=DAY_2, outages=0),
            tuned("300s", detection_max_ms=2 * MINUTE, detection_ms=2 * MINUTE, failed=40),
            tuned("300s", dt=DAY_2, outages=0),
        ],
    )

    assert found.sentences == [
        "For all routes: samples of the last 5 min (from 100 to 4,000), and open at 90 % failures. "
        "On 2 recorded days with 1 outage: outages missed 0 instead of 1, slowest detection of an "
        "outage 2 min instead of none and calls that fail 40 instead of 900."
    ]
    [advice] = found.advice
    assert (advice.target, advice.days, advice.refusal) == ("*", 2, None)
    assert advice.settings == settings_of(tuned("300s"), *BREAKER)
    assert advice.before == settings_of(tuned("now"), *BREAKER)
    assert found.picture is not None
    assert [p.values for p in found.picture.points] == [[900, 40]]


def test_settings_in_force_that_are_as_good_as_any_stay() -> None:
    found = ask("breaker", [tuned("now", outages=0), tuned("300s", outages=0)])

    assert found.sentences == [
        "For all routes the settings in force did as well as any that were replayed (1 day)."
    ]
    assert [one.refusal for one in found.advice] == ["These settings are in force."]


def test_advice_is_compared_with_the_settings_that_are_really_in_force() -> None:
    rows = [tuned("now", missed=1), tuned("300s")]
    applied = SettingsInForce(target="*", key="*", settings=settings_of(rows[1], *BREAKER))

    found = ask("breaker", rows, [applied])

    assert [one.refusal for one in found.advice] == ["These settings are in force."]


def test_settings_in_force_that_were_not_replayed_cannot_be_compared() -> None:
    rows = [tuned("now", missed=1), tuned("300s", failed=7)]
    other = settings_of(rows[0], *BREAKER) | {"error_threshold_percentage": 1}

    found = ask("breaker", rows, [SettingsInForce(target="*", key="*", settings=other)])

    [advice] = found.advice
    assert advice.refusal is not None
    assert advice.refusal.startswith("The settings in force were not replayed: set pipeline.break")
    assert (advice.backtest[4].before, advice.backtest[4].after) == (None, 7)
    assert found.picture is None


def test_candidates_that_differ_only_in_room_for_samples_are_the_same_on_all_days() -> None:
    rows = [
        tuned("now", missed=1),
        tuned("now", dt=DAY_2),
        tuned("300s", max_queue_sample_count=3_000),
        tuned("300s", dt=DAY_2, max_queue_sample_count=4_000),
    ]

    [advice] = ask("breaker", rows).advice

    assert (advice.days, advice.settings["max_queue_sample_count"]) == (2, 4_000)
    applied = advice.settings | {"max_queue_sample_count": 9_000}
    again = ask("breaker", rows, [SettingsInForce(target="*", key="*", settings=applied)])
    assert [one.refusal for one in again.advice] == ["These settings are in force."]
    scarce = advice.settings | {"max_queue_sample_count": 10}
    [other] = ask("breaker", rows, [SettingsInForce(target="*", key="*", settings=scarce)]).advice
    assert (other.refusal or "").startswith("The settings in force were not replayed")


def test_candidates_that_change_with_the_load_are_compared_on_the_newest_day() -> None:
    found = ask(
        "breaker",
        [
            tuned("now"),
            tuned("now", dt=DAY_2, missed=1),
            tuned("600s", entries_max_age_ms=10 * MINUTE),
            tuned("300s", dt=DAY_2),
        ],
    )

    [advice] = found.advice
    assert (advice.days, advice.settings["entries_max_age_ms"]) == (1, 5 * MINUTE)


def test_before_and_after_are_of_that_day_alone() -> None:
    rows = [
        tuned("now", failed=7),
        tuned("now", dt=DAY_2, missed=1, failed=5),
        tuned("300s", dt=DAY_2, failed=2),
    ]

    [advice] = ask("breaker", rows).advice

    assert advice.days == 1
    assert (advice.backtest[4].before, advice.backtest[4].after) == (5, 2)


def test_days_on_which_the_settings_in_force_were_not_replayed_do_not_count() -> None:
    rows = [
        tuned("now", dt=DAY_2, failed=10, missed=1),
        tuned("now", dt=DAY_3, failed=10),
        *(tuned("300s", dt=day, failed=1) for day in (DAY_1, DAY_2, DAY_3)),
    ]

    [advice] = ask("breaker", rows).advice

    assert advice.days == 2
    assert (advice.backtest[4].before, advice.backtest[4].after) == (20, 2)


def test_the_newest_replayed_settings_are_compared_if_nothing_else_is_known() -> None:
    old = backtest("now", backlog_goal_s=900, worker_hours=9.0)
    new = backtest("now", dt=DAY_2, worker_hours=8.0)
    better = [backtest("60s", dt=day, worker_hours=1.0) for day in (DAY_1, DAY_2)]

    found = ask("fleet", [old, new, *better])

    assert "used 1 worker hours instead of 8" in found.sentences[0]


def test_a_replay_with_other_room_for_samples_is_not_that_of_the_settings_in_force() -> None:
    rows = [tuned("now", missed=1), tuned("300s")]
    scarce = settings_of(rows[0], *BREAKER) | {"max_queue_sample_count": 1_000}

    [advice] = ask("breaker", rows, [SettingsInForce(target="*", key="*", settings=scarce)]).advice

    assert (advice.refusal or "").startswith("The settings in force were not replayed")


def test_the_cheapest_profile_that_is_fast_enough_on_every_day_is_recommended() -> None:
    found = ask(
        "fleet",
        [
            backtest("now", worker_hours=10.0),
            backtest("now", dt=DAY_2, worker_hours=10.0),
            backtest("60s", worker_hours=4.0, age_p99_ms=10_000),
            backtest("60s", dt=DAY_2, worker_hours=4.0, age_p99_ms=30_000),
            # Cheaper, but too slow on one day.
            backtest("900s", backlog_goal_s=900, worker_hours=1.0),
            backtest("900s", dt=DAY_2, backlog_goal_s=900, worker_hours=1.0, age_p99_ms=HOUR),
        ],
    )

    assert found.sentences == [
        "For mail: backlog_goal_s = 60, samples_needed = 3, most_up = 5. On 2 recorded days it "
        "would have used 8 worker hours instead of 20 (60 % less), and claimed 99 of 100 messages "
        "within 30 s on the worst day, instead of 50 s."
    ]
    assert found.advice == []  # no fleet is known
    assert found.picture is not None
    assert [p.values for p in found.picture.points] == [[20.0, 8.0]]


def test_advice_names_the_fleet_of_the_queue() -> None:
    rows = [backtest("now"), backtest("60s", worker_hours=4.0)]
    fleets = [
        SettingsInForce(target="mailers", key="mail", settings=settings_of(rows[0], *PROFILE)),
        SettingsInForce(target="all", key="", settings=None),
    ]

    found = ask("fleet", rows, fleets)

    [advice] = found.advice
    assert (advice.target, advice.refusal) == ("mailers", None)
    assert advice.settings == settings_of(rows[1], *PROFILE)
    hours = advice.backtest[0]
    assert (hours.name, hours.before, hours.after) == ("worker hours", 10.0, 4.0)
    assert found.sentences[-1].startswith("Not replayed: all (several queues")


def test_a_queue_without_arrivals_or_other_candidates_needs_no_change() -> None:
    lonely = ask("fleet", [backtest("now", age_p99_ms=None, worker_hours=0.0)])

    assert lonely.sentences == ["The profile in force is the best of those replayed for mail."]
    assert ask("fleet", [backtest("60s", dt=DAY_1)]).sentences == [
        "No messages were processed in this period."
    ]
