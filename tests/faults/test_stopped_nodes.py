"""Nodes on one PostgreSQL of which one is stopped, or cut off, in the middle of a transaction."""

from __future__ import annotations

from functools import partial

import psycopg

from tests.faults.checker import Rules
from tests.faults.conftest import MakeServer
from tests.faults.figures import figure
from tests.faults.load import Load
from tests.faults.probe import Probe
from tests.faults.proxy import Proxy
from tests.faults.scenario import SHARED_CLOCK_SLACK_S, assert_kept, judge, two_nodes
from tests.faults.server import Server
from tests.support.postgres import PostgresCluster
from tests.support.waiting import eventually

OPTIONS = "?timeout_ms=3000&keepalives_idle=1&keepalives_interval=1&keepalives_count=2"
TRIES = 100  # a moment in a transaction is met in a few
AGAIN_S = 30.0
STALLED = """
SELECT pid, backend_start
  FROM pg_stat_activity
 WHERE datname = current_database()
   AND application_name = 'penstock'
   AND xact_start IS NOT NULL
   AND wait_event = 'ClientRead'
   AND state_change < clock_timestamp() - interval '200 ms'
"""
PORTS = "SELECT client_port FROM pg_stat_activity WHERE application_name = 'penstock'"
# The node does not know a connection that is cut while it is being opened.
PORTS_IN_USE = PORTS + " AND query IN ('COMMIT', 'ROLLBACK')"
ALIVE = "SELECT pid, backend_start FROM pg_stat_activity WHERE application_name = 'penstock'"


def test_the_locks_of_a_stopped_node_are_released_while_it_is_stopped(
    make_server: MakeServer, database: str
) -> None:
    stopping, other = two_nodes(make_server(database + OPTIONS), make_server(database + OPTIONS))
    probe, own_probe = Probe(other.port), Probe(stopping.port)
    probe.make_queue()

    def stop_it(load: Load) -> None:
        for _ in range(figure(1, 12)):
            load.wait_for_sends(200, within_s=30)
            held = load.fault("stopped", lambda: stop_in_transaction(stopping, database))
            try:
                eventually(partial(is_rid_of, held, database, ALIVE))
                probe.seconds_until_a_send_works(AGAIN_S)
            finally:
                load.fault("resume", stopping.resume)
            own_probe.seconds_until_a_send_works(AGAIN_S)
        load.wait_for_sends(100, within_s=30)

    rules = Rules(min_acked=300, ids_are_ordered=False, slack_s=SHARED_CLOCK_SLACK_S)
    verdict = judge(other, stop_it, rules, ports=[stopping.port, other.port])

    assert_kept(verdict, stopping, other)


def stop_in_transaction(node: Server, url: str) -> set[tuple[object, ...]]:
    """Stop it while it has an open transaction; returns the sessions of such transactions."""
    for _ in range(TRIES):
        node.pause()
        node.wait_until_paused()
        if held := eventually_found(url):
            return held
        node.resume()
    raise AssertionError(f"it was never stopped in a transaction, {TRIES} times")


def eventually_found(url: str) -> set[tuple[object, ...]]:
    """Sessions that keep waiting for their client."""
    for _ in range(3):
        if held := found(url, STALLED):
            return held
        with psycopg.connect(url) as connection:
            connection.execute("SELECT pg_sleep(0.15)")
    return set()


def is_rid_of(lost: set[tuple[object, ...]], url: str, query: str) -> bool:
    return not lost & found(url, query)


def found(url: str, query: str) -> set[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return set(connection.execute(query.encode()).fetchall())


def test_a_node_that_loses_its_network_leaves_no_lock_and_no_connection(
    make_server: MakeServer, postgres_cluster: PostgresCluster, database: str
) -> None:
    with Proxy(postgres_cluster.port) as proxy:
        cut, other = two_nodes(
            make_server(f"{database}{OPTIONS}&port={proxy.port}"), make_server(database + OPTIONS)
        )
        probe, own_probe = Probe(other.port), Probe(cut.port)
        probe.make_queue()

        def cut_it(load: Load) -> None:
            for how in (proxy.freeze, proxy.pull_cable) * figure(1, 3):
                load.wait_for_sends(100, within_s=30)
                used = found(database, PORTS_IN_USE)
                ports = load.fault(how.__name__, how)
                own_probe.seconds_until_a_send_works(AGAIN_S)
                probe.seconds_until_a_send_works(AGAIN_S)
                lost = {row for row in used if row[0] in ports}
                assert lost
                eventually(partial(is_rid_of, lost, database, PORTS))
            load.wait_for_sends(100, within_s=30)

        rules = Rules(min_acked=300, ids_are_ordered=False, slack_s=SHARED_CLOCK_SLACK_S)
        verdict = judge(other, cut_it, rules, ports=[cut.port, other.port])

        assert_kept(verdict, cut, other)
