"""A full disk, failing writes, failing syncs: the broker reports them and recovers."""

from __future__ import annotations

import random
import time
from functools import partial
from pathlib import Path

import pytest

from tests.faults.checker import Rules
from tests.faults.conftest import MakeServer
from tests.faults.disk import Loss
from tests.faults.figures import figure
from tests.faults.history import Kind, Outcome
from tests.faults.load import Load
from tests.faults.probe import Probe, assert_all_refused
from tests.faults.scenario import assert_kept, judge, on_faulty_disk
from tests.faults.server import Server

REFUSED_WITHIN_S = 10.0  # on a busy machine; one that hangs takes the 15 s of a probe
RECOVERED_WITHIN_S = 10.0


@pytest.fixture
def server(make_server: MakeServer, tmp_path: Path) -> Server:
    made = make_server(**on_faulty_disk(tmp_path / "data"))
    made.start()
    return made


@pytest.mark.parametrize("trouble", ["is_full", "writes_fail"])
def test_while_writes_fail_sends_are_refused_and_then_it_recovers_unaided(
    server: Server, trouble: str
) -> None:
    dice, times = random.Random(10), figure(1, 4)
    probe = Probe(server.port)
    probe.make_queue()

    def fail_for_a_while(load: Load) -> None:
        for _ in range(times):
            load.wait_for_sends(200, within_s=60)
            load.fault(trouble, lambda: server.steer(set={trouble: True}))
            broken = time.monotonic()
            answers = probe.send_for(dice.uniform(1, 3))
            over = time.monotonic()
            load.fault("over", lambda: server.steer(set={trouble: False}))
            acked = [op for op in load.history.of(Kind.SEND, Outcome.OK) if op.start >= broken]
            assert not [op for op in acked if op.end <= over], "acknowledged on a broken disk"
            assert_all_refused(answers, within_s=REFUSED_WITHIN_S)
            probe.seconds_until_a_send_works(RECOVERED_WITHIN_S)
        load.wait_for_sends(100, within_s=60)

    assert_kept(judge(server, fail_for_a_while, Rules(min_acked=200 * times)), server)


def test_nothing_acknowledged_despite_failed_syncs_is_lost_in_a_power_cut(server: Server) -> None:
    times = figure(1, 4)

    def fail_then_cut(load: Load) -> None:
        for number in range(times):
            load.wait_for_sends(200, within_s=60)
            load.fault("syncs fail", lambda: server.steer(set={"syncs_fail": 0.5}))
            time.sleep(1.5)
            load.fault("over", lambda: server.steer(set={"syncs_fail": 0.0}))
            if number % 2:  # what was acknowledged meanwhile must not depend on later syncs
                load.wait_for_sends(100, within_s=60)
            load.fault(
                "power cut",
                partial(server.cut_power, loss=Loss.EVERYTHING, seed=number),
                forgets_leases=True,
            )
            server.start()
        load.wait_for_sends(100, within_s=60)

    assert_kept(judge(server, fail_then_cut, Rules(min_acked=200 * times)), server)


def test_after_failed_syncs_the_broker_recovers_unaided(server: Server) -> None:
    probe = Probe(server.port)
    probe.make_queue()

    def fail_all(load: Load) -> None:
        load.wait_for_sends(100, within_s=60)
        load.fault("no sync works", lambda: server.steer(set={"syncs_fail": 1.0}))
        answers = probe.send_for(1.0)
        load.fault("over", lambda: server.steer(set={"syncs_fail": 0.0}))
        assert_all_refused(answers, within_s=REFUSED_WITHIN_S)
        probe.seconds_until_a_send_works(RECOVERED_WITHIN_S)
        load.wait_for_sends(100, within_s=60)

    assert_kept(judge(server, fail_all, Rules(min_acked=200)), server)
