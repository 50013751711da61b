"""Several nodes report to the same circuits, hold the same queues, and share the duties."""

import json

from msgspec.structs import replace

from penstock.domain.circuit.circuit import OutcomeReport, Permit, RequestOutcome, circuit_hash
from penstock.domain.circuit.settings import BreakerSettings, BreakerTask
from penstock.services.circuits.circuits import CircuitService
from penstock.services.circuits.permits import PermitRequest
from penstock.services.routes import RouteService
from tests.store.postgres.helpers import at_once, by_hand

PATTERNS = ["/a/(.*)", "/b/(.*)", "/c/(.*)"]
SOON = BreakerTask(enabled=True, interval_ms=1_000)
SETTINGS = BreakerSettings(
    circuit_check_enabled=True,
    statistics_update_enabled=True,
    min_queue_sample_count=150,
    error_threshold_percentage=50,
    open_to_half_open=SOON,
    unlock_queues=SOON,
    unlock_probes=SOON,
    single_probe=True,
)


def nodes_of(drivers):
    made = []
    for driver in drivers:
        routes = RouteService(driver.store, driver.clock)
        made.append(CircuitService(driver.store, driver.clock, routes))
    RouteService(drivers[0].store, drivers[0].clock).put(
        json.dumps({pattern: {"url": "http://h/"} for pattern in PATTERNS})
    ).result()
    made[0].breaker.put(SETTINGS).result()
    for node in made:
        node.refresh()
    return made


def test_outcomes_that_many_nodes_report_at_once_are_counted_and_each_circuit_opens_once(
    drivers, postgres_url, backed_off
):
    nodes = nodes_of(drivers)
    queues = [drivers[0].queue(f"q{i}") for i in range(6)]

    def work(number):
        node = nodes[number % len(nodes)]
        ordered = PATTERNS if number % 2 else PATTERNS[::-1]
        for turn in range(10):
            reports = [
                OutcomeReport(
                    node.unchecked(pattern, queues[(number + i) % 6].queue_no),
                    f"{number}-{turn}-{i}",
                    RequestOutcome.FAILURE,
                )
                for pattern in ordered
                for i in range(5)
            ]
            node.report(reports).result()

    at_once(*(lambda number=number: work(number) for number in range(6)))

    rows = by_hand(postgres_url, "SELECT pattern, state, successes, failures FROM circuit")
    assert sorted(rows) == [(pattern, "open", 0, 300) for pattern in PATTERNS]
    kept = by_hand(postgres_url, "SELECT count(*) FROM circuit_sample")
    assert kept == [(900,)]
    facts = by_hand(postgres_url, "SELECT subject FROM fact WHERE kind = 'circuit_opened'")
    assert sorted(facts) == sorted((circuit_hash(pattern),) for pattern in PATTERNS)
    assert backed_off == []


def test_one_of_many_simultaneous_permit_requests_is_the_probe(drivers):
    nodes = nodes_of(drivers)
    one = circuit_hash(PATTERNS[0])
    node = nodes[0]
    reports = [
        OutcomeReport(node.unchecked(PATTERNS[0]), f"r{i}", RequestOutcome.FAILURE)
        for i in range(150)
    ]
    node.report(reports).result()
    assert node.half_open_all(now=drivers[0].now).result().done == 1
    queues = [drivers[0].queue(f"q{i}") for i in range(8)]

    def ask(number):
        asked = nodes[number % len(nodes)]
        found = asked.permits([PermitRequest(PATTERNS[0], queues[number].queue_no)]).result()
        return asked.secure(found).result()[0]

    answers = at_once(*(lambda number=number: ask(number) for number in range(8)))

    permits = [one.permit for one in answers]
    assert permits.count(Permit.PROBE) == 1
    assert permits.count(Permit.HOLD) == 7
    assert len(drivers[0].read(lambda s: s.circuits.held(one))) == 7


def test_each_duty_is_done_by_one_of_several_nodes(drivers):
    nodes = nodes_of(drivers)
    queues = [drivers[0].queue(f"q{i}") for i in range(20)]
    one = circuit_hash(PATTERNS[0])

    def hold(session):
        session.circuits.lock_or_add({one: PATTERNS[0]})
        nos = [queue.queue_no for queue in queues]
        session.circuits.hold(one, nos, now=drivers[0].now)
        session.queues.hold(nos, by=one)

    drivers[0].write(hold)
    nodes[0].force_open(one).result()
    nodes[0].close(one).result()
    done = []
    for _ in range(3):
        drivers[0].clock.advance(seconds=1)
        ticks = [lambda node=node: node.release_next(now=drivers[0].now) for node in nodes * 2]
        ticked = at_once(*(lambda tick=tick: tick().result().done for tick in ticks))
        done.append(sorted(ticked, key=str))

    assert all(turn == [1] + [None] * (len(nodes) * 2 - 1) for turn in done)
    assert len(drivers[0].read(lambda s: s.circuits.next_for_release(100))) == 17


def test_rules_may_change_while_outcomes_come_in(drivers, backed_off):
    nodes = nodes_of(drivers)
    routes = RouteService(drivers[0].store, drivers[0].clock)

    def report():
        for i in range(20):
            answers = nodes[1].unchecked(PATTERNS[i % 3])
            nodes[1].report([OutcomeReport(answers, f"r{i}", RequestOutcome.FAILURE)]).result()

    def change():
        for i in range(10):
            kept = PATTERNS[:1] if i % 2 else PATTERNS
            rules = {pattern: {"url": "http://h/"} for pattern in kept}
            routes.put(json.dumps(rules)).result()
            nodes[1].refresh()

    at_once(report, change)

    assert circuit_hash(PATTERNS[0]) in nodes[0].all().result()
    assert backed_off == []


def test_nodes_that_change_settings_at_once_do_not_undo_each_others_changes(drivers):
    nodes = [
        CircuitService(driver.store, driver.clock, RouteService(driver.store, driver.clock))
        for driver in drivers
    ]
    before = BreakerSettings().min_queue_sample_count

    def work(number):
        for _ in range(10):
            nodes[number % len(nodes)].breaker.change(
                lambda s: replace(s, min_queue_sample_count=s.min_queue_sample_count + 1)
            ).result()

    at_once(*(lambda number=number: work(number) for number in range(6)))

    assert nodes[0].breaker.get().result().min_queue_sample_count == before + 60
