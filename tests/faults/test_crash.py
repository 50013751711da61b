"""The broker is killed, terminated, killed while it recovers, and paused, under load."""

from __future__ import annotations

import random
import time

from tests.faults.checker import Rules
from tests.faults.figures import figure
from tests.faults.load import Load
from tests.faults.scenario import assert_kept, judge
from tests.faults.server import Server
from tests.faults.workload import Workload

# CPU seconds of the process itself.  To start takes about one on an idle core and two where another
# program keeps the second thread of the core busy; a recovery that reads everything takes minutes.
BACK_S = 5.0
GONE_AFTER_SIGTERM_S = 20.0
STALE = 1.0  # leases shorter than the pauses, so that some end meanwhile


def test_a_killed_broker_recovers_quickly_and_has_kept_its_promises(
    server: Server,
) -> None:
    kills, acked = figure(4, 60), figure(2500, 30_000)
    back: list[float] = []

    def kill_again_and_again(load: Load) -> None:
        for _ in range(kills):
            load.wait_for_sends(acked // (kills + 1), within_s=30)
            load.fault("kill -9", server.kill)
            server.start()
            back.append(server.cpu_s())
        load.wait_for_sends(acked - load.history.acked(), within_s=60)

    workload = Workload(producers=4, batch=10, pause_s=0.0)
    verdict = judge(server, kill_again_and_again, Rules(min_acked=acked), workload=workload)

    assert_kept(verdict, server)
    assert max(back) <= BACK_S, f"back after {[f'{s:.2f}' for s in back]} s"


def test_a_terminated_broker_finishes_its_work_and_exits_with_zero(server: Server) -> None:
    times = figure(1, 8)
    exits: list[tuple[int | None, float]] = []

    def redeploy(load: Load) -> None:
        for _ in range(times):
            load.wait_for_sends(200, within_s=60)
            exits.append(
                load.fault("SIGTERM", lambda: server.terminate(within_s=GONE_AFTER_SIGTERM_S))
            )
            server.start()
        load.wait_for_sends(100, within_s=60)

    verdict = judge(server, redeploy, Rules(min_acked=200 * times))

    assert [code for code, _ in exits] == [0] * times, f"{exits}\n{server.stderr_tail()}"
    assert_kept(verdict, server)


def test_a_broker_killed_again_while_it_recovers_still_recovers(server: Server) -> None:
    times, dice = figure(1, 8), random.Random(3)
    back: list[float] = []

    def kill_in_recovery(load: Load) -> None:
        for _ in range(times):
            load.wait_for_sends(300, within_s=60)
            load.fault("kill -9", server.kill)
            for _ in range(dice.randint(1, 3)):
                server.start(wait=False)
                time.sleep(dice.uniform(0.02, 0.5))
                load.fault("kill -9 in recovery", server.kill)
            server.start()
            back.append(server.cpu_s())
        load.wait_for_sends(100, within_s=60)

    verdict = judge(server, kill_in_recovery, Rules(min_acked=300 * times))

    assert_kept(verdict, server)
    assert max(back) <= BACK_S, f"back after {[f'{s:.2f}' for s in back]} s"


def test_a_paused_broker_judges_leases_by_the_time_that_really_passed(server: Server) -> None:
    times, dice = figure(1, 8), random.Random(4)

    def pause(load: Load) -> None:
        for _ in range(times):
            load.wait_for_sends(200, within_s=60)
            load.fault("SIGSTOP", server.pause)
            time.sleep(dice.uniform(1.2, 3))
            load.fault("SIGCONT", server.resume)
        load.wait_for_sends(200, within_s=60)

    workload = Workload(lease_ms=int(STALE * 1000))
    verdict = judge(server, pause, Rules(min_acked=200 * times), workload=workload)

    assert_kept(verdict, server)
