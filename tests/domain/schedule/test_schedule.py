"""When recurring work is sent."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, HOUR, MAX_INSTANT, MINUTE, SECOND
from penstock.domain.schedule import schedule as schedules
from penstock.domain.schedule.schedule import (
    CatchUp,
    Cron,
    FixedInterval,
    Overlap,
    Schedule,
    Template,
)

BERLIN = "Europe/Berlin"
NOON = 1_700_000_000_000 // DAY * DAY + 12 * HOUR


def at(text: str, zone: str = "UTC") -> int:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=ZoneInfo(zone))
    return round(moment.timestamp() * 1000)


def local(instant: int, zone: str) -> str:
    moment = datetime.fromtimestamp(instant / 1000, UTC).astimezone(ZoneInfo(zone))
    return moment.isoformat(timespec="minutes")


def a_schedule(**changes: object) -> Schedule:
    fields: dict[str, object] = {
        "name": "nightly",
        "rhythm": FixedInterval(HOUR),
        "template": Template(queue="mail"),
        "created_at": NOON,
        "changed_at": NOON,
        "next_at": NOON,
    }
    return Schedule(**(fields | changes))  # type: ignore[arg-type]


def test_a_cron_expression_is_read_in_its_time_zone() -> None:
    daily = Cron("30 2 * * *", BERLIN)

    found = schedules.preview(daily, after=at("2026-07-01T00:00", BERLIN), count=2)

    assert found == [at("2026-07-01T02:30+02:00"), at("2026-07-02T02:30+02:00")]


@pytest.mark.parametrize(
    ("alias", "fields"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ],
)
def test_the_names_that_debians_cron_has_for_rhythms_are_understood(
    alias: str, fields: str
) -> None:
    after = at("2026-07-01T00:30", BERLIN)

    found = schedules.preview(Cron(alias, BERLIN), after=after, count=3)

    assert found == schedules.preview(Cron(fields, BERLIN), after=after, count=3)
    schedules.check_rhythm(Cron(alias, BERLIN))


def test_a_time_that_daylight_saving_skips_is_fired_right_after_the_gap() -> None:
    daily = Cron("30 2 * * *", BERLIN)

    found = schedules.preview(daily, after=at("2026-03-28T12:00", BERLIN), count=2)

    assert [local(instant, BERLIN) for instant in found] == [
        "2026-03-29T03:00+02:00",
        "2026-03-30T02:30+02:00",
    ]


def test_a_time_that_daylight_saving_repeats_is_fired_once() -> None:
    daily = Cron("30 2 * * *", BERLIN)
    first = at("2026-10-25T02:30+02:00")

    assert schedules.next_after(daily, at("2026-10-25T01:00+02:00")) == first
    # Also for a node that starts to look between the first 02:30 and the second.
    for after in (first, at("2026-10-25T02:45+02:00"), at("2026-10-25T02:10+01:00")):
        assert schedules.next_after(daily, after) == at("2026-10-26T02:30+01:00")


def test_hourly_work_follows_real_hours_when_the_clocks_change() -> None:
    hourly = Cron("15 * * * *", BERLIN)

    found = schedules.preview(hourly, after=at("2026-10-25T01:00+02:00"), count=4)

    assert [b - a for a, b in pairwise(found)] == [HOUR] * 3


def test_a_sixth_field_in_front_means_seconds() -> None:
    found = schedules.preview(Cron("*/20 * * * * *"), after=NOON, count=3)

    assert found == [NOON + 20 * SECOND, NOON + 40 * SECOND, NOON + MINUTE]


def test_an_interval_falls_on_whole_multiples_so_that_all_nodes_agree() -> None:
    every = FixedInterval(15 * MINUTE)

    assert schedules.next_after(every, NOON + 1) == NOON + 15 * MINUTE
    assert schedules.next_after(every, NOON + 15 * MINUTE) == NOON + 30 * MINUTE


@given(
    expression=st.sampled_from(
        ["* * * * *", "*/7 3 * * *", "0 2 * * 1-5", "30 2 L * *", "5,55 1-3 * * 7", "0 0 29 2 *"]
    ),
    zone=st.sampled_from(
        ["UTC", BERLIN, "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kolkata"]
    ),
    after=st.integers(0, 2_000_000_000_000),
)
def test_the_next_instant_always_lies_behind_the_last(
    expression: str, zone: str, after: int
) -> None:
    found = schedules.preview(Cron(expression, zone), after=after, count=5)

    assert found == sorted(set(found))
    assert found[0] > after


@pytest.mark.parametrize(
    ("rhythm", "words"),
    [
        (Cron("61 * * * *"), "not a cron expression"),
        (Cron("* * *"), "not a cron expression"),
        (Cron("@reboot"), "known are @yearly"),
        (Cron("0 0 31 2 *"), "not a cron expression"),
        (Cron("5," * 200 + "5 * * * *"), "256 characters"),
        (Cron("0 0 * * *", "Mars/Olympus"), "does not exist"),
        (Cron("0 0 * * *", "../../etc/passwd"), "does not exist"),
        (FixedInterval(999), "every_ms"),
    ],
)
def test_an_invalid_rhythm_is_refused(rhythm: schedules.Rhythm, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words):
        schedules.check("nightly", rhythm, Template(queue="mail"))


def test_nothing_is_fired_before_its_time() -> None:
    plan = schedules.plan(a_schedule(next_at=NOON + 1), now=NOON)

    assert (plan.fire_at, plan.next_at) == ((), NOON + 1)


def test_a_due_schedule_fires_and_has_its_next_instant() -> None:
    plan = schedules.plan(a_schedule(), now=NOON)

    assert (plan.fire_at, plan.skipped, plan.next_at) == ((NOON,), 0, NOON + HOUR)


@pytest.mark.parametrize(
    ("policy", "fired", "skipped"),
    [
        (CatchUp.ALL, (NOON, NOON + HOUR, NOON + 2 * HOUR), 0),
        (CatchUp.ONE, (NOON + 2 * HOUR,), 2),
        (CatchUp.SKIP, (), 3),
    ],
)
def test_missed_firings_are_caught_up_as_the_policy_says(
    policy: CatchUp, fired: tuple[int, ...], skipped: int
) -> None:
    late = NOON + 2 * HOUR + 10 * MINUTE

    plan = schedules.plan(a_schedule(catch_up=policy), now=late)

    assert (plan.fire_at, plan.skipped, plan.next_at) == (fired, skipped, NOON + 3 * HOUR)


def test_a_firing_that_is_only_a_little_late_is_not_missed() -> None:
    plan = schedules.plan(a_schedule(catch_up=CatchUp.SKIP), now=NOON + schedules.LATE_MS)

    assert plan.fire_at == (NOON,)


def test_a_firing_is_skipped_while_the_previous_one_has_not_ended() -> None:
    schedule = a_schedule(overlap=Overlap.SKIP)

    busy = schedules.plan(schedule, now=NOON, is_busy=True)
    free = schedules.plan(schedule, now=NOON)

    assert (busy.fire_at, busy.skipped, busy.next_at) == ((), 1, NOON + HOUR)
    assert free.fire_at == (NOON,)


def test_a_waiting_firing_fires_when_the_previous_one_has_ended() -> None:
    schedule = a_schedule(overlap=Overlap.WAIT, catch_up=CatchUp.ALL)
    late = NOON + 2 * HOUR

    held = schedules.plan(schedule, now=late, is_busy=True)
    one = schedules.plan(schedule, now=late)

    assert (held.is_held, held.fire_at, held.next_at) == (True, (), NOON)
    assert (one.fire_at, one.skipped, one.next_at) == ((NOON,), 0, NOON + HOUR)


def test_a_replacing_firing_fires_whether_the_previous_one_has_ended_or_not() -> None:
    schedule = a_schedule(overlap=Overlap.REPLACE, catch_up=CatchUp.ALL)

    plan = schedules.plan(schedule, now=NOON + HOUR, is_busy=True)

    assert (plan.fire_at, plan.skipped) == ((NOON + HOUR,), 1)


def test_a_pause_fires_nothing_and_is_not_caught_up() -> None:
    paused = schedules.pause(a_schedule(), now=NOON)

    assert schedules.plan(paused, now=NOON + DAY).fire_at == ()
    resumed = schedules.resume(paused, now=NOON + DAY + 1)
    assert resumed.next_at == NOON + DAY + HOUR
    assert not resumed.is_paused


def test_resuming_what_is_not_paused_changes_nothing() -> None:
    schedule = a_schedule()

    assert schedules.resume(schedule, now=NOON + DAY) == schedule


def test_the_same_words_again_do_not_move_a_firing_that_fell_due() -> None:
    before = a_schedule()
    words = a_schedule(created_at=NOON + DAY, next_at=None)

    assert schedules.declare(before, words, now=NOON + DAY) == before


def test_another_rhythm_starts_over_and_another_message_does_not() -> None:
    before = a_schedule(next_at=NOON)

    slower = schedules.declare(before, a_schedule(rhythm=FixedInterval(DAY)), now=NOON + 1)
    other = a_schedule(template=Template(queue="post"))
    renamed = schedules.declare(before, other, now=NOON + 1)

    assert slower.next_at == NOON + 12 * HOUR
    assert (renamed.next_at, renamed.template.queue) == (NOON, "post")
    assert renamed.changed_at == NOON + 1


def test_an_instant_that_the_queue_did_not_accept_stays_due() -> None:
    schedule = a_schedule(catch_up=CatchUp.ALL)
    plan = schedules.plan(schedule, now=NOON + 2 * HOUR)

    after = schedules.advance(schedule, plan, sent=["a", "b"])

    assert (after.next_at, after.last_at, after.last_id) == (NOON + 2 * HOUR, NOON + HOUR, "b")
    assert after.fired_total == 2


def test_a_look_after_years_finds_a_limited_number_and_the_next_look_the_rest() -> None:
    schedule = a_schedule(rhythm=FixedInterval(SECOND), catch_up=CatchUp.ALL)

    first = schedules.plan(schedule, now=NOON + DAY)
    after = schedules.advance(schedule, first, sent=[str(i) for i in first.fire_at])

    assert len(first.fire_at) == schedules.MAX_MISSED
    assert schedules.plan(after, now=NOON + DAY).fire_at[0] == first.fire_at[-1] + SECOND


@pytest.mark.parametrize("policy", [CatchUp.ONE, CatchUp.SKIP])
def test_one_firing_replaces_all_missed_ones_however_many_looks_they_take(
    policy: CatchUp,
) -> None:
    schedule = a_schedule(rhythm=FixedInterval(SECOND), catch_up=policy)
    # The first look ends within the minute in which a firing is only late.
    now = NOON + (schedules.MAX_MISSED + 30) * SECOND

    fired: list[int] = []
    while schedule.next_at is not None and schedule.next_at <= now:
        plan = schedules.plan(schedule, now=now)
        fired += plan.fire_at
        schedule = schedules.advance(schedule, plan, sent=[str(i) for i in plan.fire_at])

    assert fired == [now]
    assert schedule.skipped_total == schedules.MAX_MISSED + 30


def test_instants_end_with_the_calendar() -> None:
    sundays_in_leap_years = Cron("0 0 29 2 */7")

    found = schedules.preview(sundays_in_leap_years, after=NOON, count=1_000)

    assert 0 < len(found) < 1_000
    assert found[-1] < MAX_INSTANT


def test_each_message_names_its_schedule() -> None:
    draft = Template(queue="mail", attributes={"a": "b"}).draft("nightly", fire_at=NOON)

    assert draft.due_at == NOON
    assert draft.attributes == {
        "a": "b",
        "penstock.schedule": "nightly",
        "penstock.fire_at": "2023-11-14T12:00:00.000Z",
    }
