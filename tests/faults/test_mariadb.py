"""MariaDB crashes, and nodes on it are killed or sleep past their leases."""

from __future__ import annotations

import pytest

from tests.faults.checker import Rules
from tests.faults.conftest import MakeServer
from tests.faults.figures import figure
from tests.faults.load import Load
from tests.faults.probe import Probe
from tests.faults.scenario import SHARED_CLOCK_SLACK_S, assert_kept, judge, two_nodes
from tests.faults.test_nodes import (
    test_a_node_that_slept_past_a_lease_cannot_act_on_it_when_it_wakes as test_late_acts,
)
from tests.faults.test_nodes import (
    test_when_one_of_two_nodes_is_killed_the_other_keeps_serving as test_killed_nodes,
)
from tests.support.mariadb import MariadbServer
from tests.support.renewable_mariadb import RenewableMariadb

__all__ = ["test_killed_nodes", "test_late_acts"]

ANSWERS_AGAIN_S = 15.0  # its own recovery takes some


@pytest.fixture
def database(renewable_mariadb: RenewableMariadb) -> str:
    """Here a MariaDB database, with our schema in it."""
    return renewable_mariadb.renew()


def test_nodes_recover_when_mariadb_is_killed_and_have_kept_their_promises(
    make_server: MakeServer, mariadb_server: MariadbServer, database: str
) -> None:
    first, second = two_nodes(make_server(database), make_server(database))
    probes = [Probe(node.port) for node in (first, second)]
    probes[0].make_queue()

    def crash() -> None:
        mariadb_server.kill()
        mariadb_server.start()

    def let_it_die(load: Load) -> None:
        for _ in range(figure(1, 5)):
            load.wait_for_sends(figure(200, 1200), within_s=60)
            load.fault("MariaDB dies", crash)  # its claims are synced: none is forgotten
            for probe in probes:
                probe.seconds_until_a_send_works(ANSWERS_AGAIN_S)
        load.wait_for_sends(100, within_s=60)

    rules = Rules(min_acked=figure(200, 6000), ids_are_ordered=False, slack_s=SHARED_CLOCK_SLACK_S)
    verdict = judge(first, let_it_die, rules, ports=[first.port, second.port])

    assert_kept(verdict, first, second)
