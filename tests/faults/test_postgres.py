"""PostgreSQL crashes, and the network to it is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.faults.checker import Rules
from tests.faults.conftest import MakeServer
from tests.faults.figures import figure
from tests.faults.load import Load
from tests.faults.probe import Probe
from tests.faults.proxy import Proxy, Weather
from tests.faults.scenario import SHARED_CLOCK_SLACK_S, assert_kept, judge, two_nodes
from tests.faults.server import Server
from tests.faults.wire import Answer
from tests.support.postgres import PostgresCluster

ANSWERS_AGAIN_S = 5.0
TIMEOUT_MS = 1500
ANSWERED_WITHIN_S = TIMEOUT_MS / 1000 + 4  # a new connection may take three more seconds
OUTAGE_S = {"held": 1.0, "blackhole": 7.0}  # shorter, and longer, than a request may take


@pytest.mark.parametrize(
    "maltreat",
    [
        lambda cluster: (cluster.kill(), cluster.start()),
        lambda cluster: cluster.restart(immediate=True),
    ],
    ids=["killed", "restarted at once"],
)
def test_nodes_recover_when_postgresql_crashes_and_have_kept_their_promises(
    make_server: MakeServer,
    postgres_cluster: PostgresCluster,
    database: str,
    maltreat: Callable[[PostgresCluster], object],
) -> None:
    first, second = two_nodes(make_server(database), make_server(database))
    probes = [Probe(node.port) for node in (first, second)]
    probes[0].make_queue()
    times = figure(1, 5)

    def let_it_die(load: Load) -> None:
        for _ in range(times):
            load.wait_for_sends(figure(300, 1200), within_s=30)
            # Claims are not synced: those of the last moments may be forgotten.
            load.fault("PostgreSQL dies", lambda: maltreat(postgres_cluster), forgets_leases=True)
            for probe in probes:
                probe.seconds_until_a_send_works(ANSWERS_AGAIN_S)
        load.wait_for_sends(100, within_s=60)

    rules = Rules(min_acked=figure(300, 6000), ids_are_ordered=False, slack_s=SHARED_CLOCK_SLACK_S)
    verdict = judge(first, let_it_die, rules, ports=[first.port, second.port])

    assert_kept(verdict, first, second)
    assert leaked_transactions(database) == 0


def leaked_transactions(url: str) -> int:
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND state LIKE 'idle in transaction%' AND state_change < now() - interval '2 s'"
    )
    with psycopg.connect(url) as connection:
        row = connection.execute(query).fetchone()
    return int(row[0]) if row else 0


@pytest.mark.parametrize("how", ["held", "blackhole", "reset"])
def test_a_lost_network_to_postgresql_fails_requests_in_time_and_leaves_nothing_stuck(
    make_server: MakeServer, postgres_cluster: PostgresCluster, database: str, how: str
) -> None:
    with Proxy(postgres_cluster.port) as proxy:
        url = database.replace(f":{postgres_cluster.port}/", f":{proxy.port}/")
        node = make_server(f"{url}?timeout_ms={TIMEOUT_MS}")
        node.start()
        probe = Probe(node.port, timeout_s=ANSWERED_WITHIN_S + 5)
        probe.make_queue()
        threads = 0

        def lose_the_way(load: Load) -> None:
            nonlocal threads
            for _ in range(figure(1, 3)):
                load.wait_for_sends(100, within_s=60)
                threads = max(threads, thread_count(node))
                answers = load.fault(how, lambda: lose(proxy, how, probe))
                slowest = max(answer.seconds for answer in answers)
                assert slowest <= ANSWERED_WITHIN_S, f"an answer took {slowest:.1f} s"
                assert all(answer.status for answer in answers), "requests without an answer"
                probe.seconds_until_a_send_works(ANSWERS_AGAIN_S)
            load.wait_for_sends(100, within_s=60)

        rules = Rules(min_acked=200, ids_are_ordered=False, slack_s=SHARED_CLOCK_SLACK_S)
        verdict = judge(node, lose_the_way, rules)

        assert_kept(verdict, node)
        assert thread_count(node) <= threads + 2, "threads are stuck"
        assert leaked_transactions(database) == 0


def lose(proxy: Proxy, how: str, probe: Probe) -> list[Answer]:
    """The answers to a client during the outage; afterwards the network works again."""
    if how == "reset":
        proxy.reset()
        return probe.send_for(0.5)
    proxy.weather = Weather(how)
    healing = threading.Timer(OUTAGE_S[how], heal, (proxy,))
    healing.start()
    answers = probe.send_for(OUTAGE_S[how])
    healing.join()
    return answers


def heal(proxy: Proxy) -> None:
    was, proxy.weather = proxy.weather, Weather.FAIR
    if was is Weather.BLACKHOLE:
        proxy.reset()  # lost data is not sent again: such a connection is dead


def thread_count(node: Server) -> int:
    return len(list(Path(f"/proc/{node.process.pid}/task").iterdir()))
