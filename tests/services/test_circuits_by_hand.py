"""Circuits that a person closes or opens, and the settings that all of them go by."""

from __future__ import annotations

import pytest

from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.errors import (
    CircuitNotFound,
    InvalidRequest,
)
from tests.services.floor import (
    CLOSED,
    FAILURE,
    GO,
    HASH,
    HOLD,
    ON,
    OPEN,
    OTHER,
    Floor,
)


def test_closing_one_that_is_closed_forgets_its_samples(floor, queue):
    floor.tell(floor.ask(queue), FAILURE)

    floor.circuits.close(HASH).result()

    assert floor.desk.read(lambda s: s.circuits.samples(HASH, FAILURE)) == {}
    assert floor.circuits.one(HASH).result().circuit.fail_ratio == 0


def test_closing_one_that_nobody_knows_changes_nothing(floor):
    floor.circuits.close("0" * 32).result()

    assert floor.circuits.all().result() == {}
    assert floor.circuits.status("0" * 32).result() is CLOSED
    assert floor.circuits.one("0" * 32).result() is None


def test_closing_all_closes_those_that_are_open_or_half_open(floor, queue, other):
    assert floor.circuits.close_all().result() == 0
    floor.fail(queue)
    floor.half_open()
    floor.fail(other, pattern=OTHER)

    assert floor.circuits.close_all().result() == 2

    views = floor.circuits.all().result()
    assert {view.circuit.state for view in views.values()} == {CLOSED}
    line = floor.desk.read(lambda s: s.circuits.line(9))
    assert line == [queue.queue_no, other.queue_no]


def test_one_that_a_person_opens_stays_open_until_a_person_closes_it(floor, queue):
    floor.circuits.force_open(HASH).result()
    assert floor.ask(queue).permit is HOLD

    floor.half_open()
    assert floor.state is OPEN
    assert floor.circuits.one(HASH).result().circuit.is_forced

    floor.circuits.close(HASH).result()
    assert floor.state is CLOSED
    assert floor.ask(queue).permit is GO


def test_a_circuit_that_nobody_knows_is_not_opened(floor):
    with pytest.raises(CircuitNotFound):
        floor.circuits.force_open("0" * 32).result()

    jobs = circuit_hash("stripe")
    assert floor.circuits.force_open(jobs, pattern="stripe").result().state is OPEN
    assert floor.ask_for_job().permit is HOLD


def test_settings_are_the_seeds_until_somebody_sets_them(desk):
    floor = Floor(desk)

    assert floor.circuits.breaker.get().result() == floor.circuits.settings == BreakerSettings()


def test_settings_are_taken_by_all_nodes_and_reset_for_all(desk):
    here, there = Floor(desk), Floor(desk)
    wanted = BreakerSettings(**ON)

    assert here.circuits.breaker.put(wanted).result() == wanted
    assert here.circuits.settings == wanted, "at once where they were put"
    assert there.circuits.breaker.get().result() == wanted
    there.circuits.refresh()
    assert there.circuits.settings == wanted

    there.circuits.breaker.reset().result()
    here.circuits.refresh()
    assert here.circuits.settings == BreakerSettings()
    assert here.circuits.breaker.get().result() == BreakerSettings()


def test_settings_out_of_range_are_refused_and_not_kept(floor):
    before = floor.circuits.settings

    with pytest.raises(InvalidRequest, match="error_threshold_percentage"):
        floor.circuits.breaker.put(BreakerSettings(error_threshold_percentage=101))

    assert floor.circuits.settings == floor.circuits.breaker.get().result() == before


def test_settings_that_this_version_cannot_read_leave_the_present_ones(floor, desk, caplog):
    before = floor.circuits.settings
    desk.write(lambda s: s.documents.put("circuit_breaker", '{"of_the_future": 1}', now=desk.now))

    floor.circuits.refresh()

    assert floor.circuits.settings == before
    assert "not taken" in caplog.text
