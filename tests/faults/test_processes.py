"""Processes of a node are killed under load, at random instants: fronts, the writer, all of it."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.edge.node.node import children, is_running
from tests.faults.checker import Rules
from tests.faults.conftest import MakeServer
from tests.faults.figures import FULL, figure
from tests.faults.kernel_disk import KernelDisk
from tests.faults.load import Load
from tests.faults.probe import Probe
from tests.faults.scenario import SHARED_CLOCK_SLACK_S, assert_kept, judge
from tests.faults.server import Server
from tests.faults.workload import Workload
from tests.support.waiting import eventually

FRONTS = 2
BUSY = Workload(producers=4, batch=10, pause_s=0.0)
REFUSED_WITHIN_S = 10.0
RECOVERED_WITHIN_S = 10.0


def rules(acked: int) -> Rules:
    """Each front makes ids, and measures the database's time, for itself."""
    return Rules(min_acked=acked, ids_are_ordered=False, slack_s=SHARED_CLOCK_SLACK_S)


@pytest.fixture(params=["sqlite", "postgres"])
def node(request: pytest.FixtureRequest, make_server: MakeServer) -> Server:
    store = None if request.param == "sqlite" else request.getfixturevalue("database")
    made = make_server(store, processes=FRONTS)
    made.start()
    return made


@pytest.mark.parametrize("names", [["front-1", "front-2"], ["writer"]], ids=["fronts", "writer"])
def test_a_node_whose_processes_are_killed_keeps_serving_and_keeps_its_promises(
    node: Server, names: list[str]
) -> None:
    kills, dice = figure(3, 60), random.Random(5)
    acked = kills * 300

    def kill_again_and_again(load: Load) -> None:
        for _ in range(kills):
            load.wait_for_sends(300, within_s=60)
            time.sleep(dice.uniform(0, 0.05))
            load.fault("kill -9", lambda: kill(node, dice.choice(names)))
            node.wait_until_ready()
        load.wait_for_sends(100, within_s=60)

    assert_kept(judge(node, kill_again_and_again, rules(acked), workload=BUSY), node)


def test_a_node_that_is_killed_as_a_whole_has_kept_its_promises(node: Server) -> None:
    kills, dice = figure(2, 30), random.Random(6)

    def kill_again_and_again(load: Load) -> None:
        for number in range(kills):
            load.wait_for_sends(300, within_s=60)
            time.sleep(dice.uniform(0, 0.05))
            # In turns: everything at once, and the supervisor, with which the others exit.
            load.fault("kill -9", node.kill if number % 2 else lambda: kill_supervisor(node))
            node.start()
        load.wait_for_sends(100, within_s=60)

    assert_kept(judge(node, kill_again_and_again, rules(kills * 300), workload=BUSY), node)


def test_a_terminated_node_finishes_its_work_and_exits_with_zero(node: Server) -> None:
    exits: list[int | None] = []

    def redeploy(load: Load) -> None:
        load.wait_for_sends(300, within_s=60)
        exits.append(load.fault("SIGTERM", lambda: node.terminate(within_s=30))[0])
        node.start()
        load.wait_for_sends(100, within_s=60)

    verdict = judge(node, redeploy, rules(300))

    assert exits == [0], node.stderr_tail()
    assert_kept(verdict, node)


def test_syncs_that_fail_in_the_writer_lose_nothing_that_a_front_acknowledged(
    tmp_path: Path, make_server: MakeServer
) -> None:
    trouble = {"sync_s": 0.001, "syncs_fail": 0.02}
    node = make_server(processes=FRONTS, data=str(tmp_path / "data"), trouble=trouble)
    node.start()

    def wait(load: Load) -> None:
        load.wait_for_sends(figure(1_000, 20_000), within_s=120)

    verdict = judge(node, wait, rules(figure(1_000, 20_000)), workload=BUSY)

    assert_kept(verdict, node)
    assert any(outcome.startswith("send ") and outcome != "send ok" for outcome in verdict.counts)


if FULL:

    def test_a_full_disk_refuses_sends_through_fronts_and_recovers(
        tmp_path_factory: pytest.TempPathFactory, make_server: MakeServer
    ) -> None:
        with KernelDisk(tmp_path_factory.mktemp("disk")) as disk:
            node = make_server(disk.mount / "data", processes=FRONTS)
            node.start()
            probe = Probe(node.port)
            probe.make_queue()

            def fill_up(load: Load) -> None:
                for _ in range(3):
                    load.wait_for_sends(300, within_s=30)
                    ballast = load.fault("no room", disk.fill)
                    probe.send_for(2.0)
                    load.fault("room", ballast.unlink)
                    refused = [answer for answer in probe.answers if answer.status >= 500]
                    assert all(a.status in (201, 503) for a in probe.answers), probe.answers[:5]
                    assert all(a.seconds <= REFUSED_WITHIN_S for a in refused)
                    probe.seconds_until_a_send_works(RECOVERED_WITHIN_S)

            assert_kept(judge(node, fill_up, rules(900)), node)
            node.kill()


def kill(node: Server, name: str) -> None:
    found = children(node.process.pid)
    if name in found:  # otherwise it is just being started again
        os.kill(found[name], signal.SIGKILL)


def kill_supervisor(node: Server) -> None:
    pids = children(node.process.pid).values()
    node.process.kill()
    node.process.wait(60)
    eventually(lambda: not any(map(is_running, pids)))
