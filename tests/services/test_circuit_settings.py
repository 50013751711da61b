"""Circuits with settings of their own, on every node."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.circuit.overrides import NONE, BreakerOverrides
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.errors import CircuitNotFound, InvalidRequest
from penstock.services.circuits.circuits import Reported
from tests.services.floor import (
    CLOSED,
    FAILURE,
    GO,
    HALF,
    HASH,
    HOLD,
    ON,
    OPEN,
    OTHER,
    OTHER_HASH,
    PATTERN,
    PROBE,
    SUCCESS,
    Floor,
)

STRIPE = circuit_hash("stripe")
UNKNOWN = "0" * 32


def override(floor: Floor, one: str = HASH, *, route: str | None = None, **values: Any) -> None:
    change = floor.circuits.own_settings.change
    change(one, lambda _: BreakerOverrides(**values), route=route).result()


def test_a_circuit_opens_by_its_own_thresholds(floor, queue, other):
    override(floor, min_queue_sample_count=5)
    override(floor, OTHER_HASH, error_threshold_percentage=100, min_queue_sample_count=1)

    floor.fail(queue, 4)
    floor.tell(floor.ask(other, OTHER), SUCCESS, "a")
    floor.tell(floor.ask(other, OTHER), FAILURE, "b")
    assert floor.state is CLOSED
    assert floor.circuits.status(OTHER_HASH).result() is CLOSED

    floor.fail(queue, 5)
    assert floor.state is OPEN


def test_settings_count_at_once_here_and_with_the_next_look_elsewhere(floor, desk):
    there = Floor(desk)
    there.circuits.refresh()

    override(floor, slow_call_ms=5)

    assert floor.circuits.settings_of(HASH).slow_call_ms == 5
    assert floor.circuits.settings_of(OTHER_HASH) == floor.circuits.settings
    assert there.circuits.settings_of(HASH).slow_call_ms is None
    there.circuits.refresh()
    assert there.circuits.settings_of(HASH) == floor.circuits.settings_of(HASH)

    override(there)
    floor.circuits.refresh()
    assert floor.circuits.settings_of(HASH) == floor.circuits.settings


def test_a_new_default_reaches_circuits_that_do_not_override_it(floor):
    override(floor, slow_call_ms=5)

    floor.circuits.breaker.put(BreakerSettings(error_threshold_percentage=20)).result()

    found = floor.circuits.own_settings.get(HASH).result()
    assert (found.settings.error_threshold_percentage, found.settings.slow_call_ms) == (20, 5)
    assert found.settings == floor.circuits.settings_of(HASH)
    floor.circuits.breaker.reset().result()
    assert floor.circuits.settings_of(HASH).slow_call_ms == 5


def test_one_circuit_alone_may_be_checked(desk, queue, other):
    floor = Floor(desk)
    floor.begin(circuit_check_enabled=False, statistics_update_enabled=False)
    assert not floor.circuits.is_watching
    override(floor, circuit_check_enabled=True, statistics_update_enabled=True)
    assert floor.circuits.is_checking

    floor.fail(queue)
    floor.fail(other, pattern=OTHER)

    assert floor.ask(queue).permit is HOLD
    assert floor.is_held(queue)
    assert list(floor.circuits.all().result()) == [HASH]
    assert floor.ask(other, OTHER).permit is GO


def test_a_circuit_that_is_not_checked_any_more_lets_its_queues_go(floor, queue, other):
    floor.fail(queue)
    floor.fail(other, pattern=OTHER)

    override(floor, circuit_check_enabled=False)
    floor.circuits.held_queues.release_idle()

    assert floor.desk.read(lambda s: s.circuits.line(9)) == [queue.queue_no]
    assert floor.ask(queue).permit is GO
    assert floor.ask(other, OTHER).permit is HOLD


def test_a_circuit_stays_open_for_its_own_time(floor, queue, other):
    override(floor, min_open_ms=5_000)
    floor.fail(queue)
    floor.fail(other, pattern=OTHER)
    states = []
    for _ in range(5):
        floor.half_open()
        states.append(floor.state)

    assert states == [*[OPEN] * 4, HALF]
    assert floor.circuits.status(OTHER_HASH).result() is HALF


def test_one_circuit_is_probed_one_by_one_and_another_is_not(floor, queue, other):
    override(floor, single_probe=True)
    floor.fail(queue)
    floor.fail(queue, pattern=OTHER)
    floor.half_open()

    assert [floor.ask(other).permit for _ in range(2)] == [PROBE, HOLD]
    assert [floor.ask(other, OTHER).permit for _ in range(2)] == [PROBE, PROBE]


def test_jobs_wait_by_the_settings_of_their_route(floor):
    override(floor, STRIPE, route="stripe", min_open_ms=60_000)
    told = floor.ask_for_job()
    floor.circuits.report([Reported(told, name, FAILURE) for name in "ab"]).result()

    assert floor.ask_for_job().wait_ms == 61_000


def test_slow_answers_of_one_circuit_are_failures(floor, queue):
    override(floor, slow_call_ms=100)
    for pattern in (PATTERN, OTHER):
        told = floor.ask(queue, pattern)
        slow = [Reported(told, name, SUCCESS, took_ms=100) for name in "ab"]
        floor.circuits.report(slow).result()

    assert floor.state is OPEN
    assert floor.circuits.status(OTHER_HASH).result() is CLOSED


def test_the_circuits_with_settings_of_their_own_are_listed(floor):
    override(floor, STRIPE, route="stripe", single_probe=True)
    override(floor, slow_call_ms=5)

    found = floor.circuits.own_settings.all().result()

    assert [(one.route, one.circuit, one.overrides.values()) for one in found] == [
        (PATTERN, HASH, {"slow_call_ms": 5}),
        ("stripe", STRIPE, {"single_probe": True}),
    ]
    override(floor, STRIPE)
    assert [one.route for one in floor.circuits.own_settings.all().result()] == [PATTERN]


def test_a_circuit_that_nobody_knows_is_named_by_its_route(floor):
    own = floor.circuits.own_settings
    for ask in (own.get(UNKNOWN), own.change(UNKNOWN, lambda before: before)):
        with pytest.raises(CircuitNotFound):
            ask.result()
    with pytest.raises(InvalidRequest, match="the circuit of route 'stripe' is"):
        own.get(UNKNOWN, route="stripe").result()

    assert own.get(STRIPE, route="stripe").result().overrides == NONE
    override(floor, STRIPE, route="stripe", single_probe=True)
    assert own.get(STRIPE).result().route == "stripe", "known from now on"


def test_settings_outlast_the_circuit_and_its_rule(floor, queue):
    override(floor, slow_call_ms=5)
    floor.fail(queue)
    floor.routes.remove().result()

    assert floor.circuits.all().result() == {}
    assert floor.circuits.own_settings.get(HASH).result().overrides.slow_call_ms == 5


def test_settings_out_of_range_are_refused_and_not_kept(floor):
    override(floor, slow_call_ms=5)
    before = floor.circuits.settings_of(HASH)

    with pytest.raises(InvalidRequest, match="error_threshold_percentage"):
        override(floor, error_threshold_percentage=101)

    assert floor.circuits.settings_of(HASH) == before
    assert floor.circuits.own_settings.get(HASH).result().settings == before


def test_each_change_is_a_fact(floor):
    override(floor, slow_call_ms=5)

    assert [fact.kind for fact in floor.facts()] == ["breaker_changed"]


def test_settings_that_this_version_cannot_read_leave_the_present_ones(floor, desk, caplog):
    override(floor, slow_call_ms=5)
    text = '{"/pay/(.*)": {"of_the_future": 1}}'
    desk.write(lambda s: s.documents.put("circuit_breaker_overrides", text, now=desk.now))

    floor.circuits.refresh()

    assert floor.circuits.settings_of(HASH) == BreakerSettings(**ON, slow_call_ms=5)
    assert "ignoring the stored settings of single circuits" in caplog.text
