"""Power cuts, a full disk and a read-only disk by the kernel itself, on an ext4 of the test's own.

Only with PENSTOCK_FAULTS=full: they need root and loop mounts, and fail where these are missing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.checker import Rules
from tests.faults.conftest import MakeServer
from tests.faults.figures import FULL
from tests.faults.kernel_disk import KernelDisk
from tests.faults.load import Load
from tests.faults.probe import Probe, assert_all_refused
from tests.faults.scenario import assert_kept, judge

CUTS = 15
ACKED_PER_CUT = 550
REFUSED_WITHIN_S = 10.0
RECOVERED_WITHIN_S = 10.0

if FULL:

    @pytest.fixture
    def disk(tmp_path: Path) -> Iterator[KernelDisk]:
        with KernelDisk(tmp_path) as made:
            yield made

    def test_a_power_cut_made_by_the_kernel_loses_nothing_acknowledged(
        disk: KernelDisk, make_server: MakeServer
    ) -> None:
        server = make_server(disk.mount / "data")
        server.start()

        def cut(load: Load) -> None:
            for _ in range(CUTS):
                load.wait_for_sends(ACKED_PER_CUT, within_s=60)

                def lose_power() -> None:
                    # The processor stops first: this ioctl races with a sync under way, which then
                    # answers "done" for what is lost (measured: 2 of 60 cuts, bare fdatasync).
                    server.pause()
                    server.wait_until_paused()
                    disk.cut_power()
                    server.kill()

                load.fault("power cut", lose_power, forgets_leases=True)
                disk.repair()
                server.start()
            load.wait_for_sends(100, within_s=60)

        assert_kept(judge(server, cut, Rules(min_acked=CUTS * ACKED_PER_CUT)), server)

    def test_a_disk_without_room_refuses_sends_and_recovers_when_there_is_room(
        disk: KernelDisk, make_server: MakeServer
    ) -> None:
        server = make_server(disk.mount / "data")
        server.start()
        probe = Probe(server.port)
        probe.make_queue()

        def fill_up(load: Load) -> None:
            for _ in range(4):
                load.wait_for_sends(300, within_s=30)
                ballast = load.fault("no room", disk.fill)
                probe.send_for(2.0)
                load.fault("room", ballast.unlink)
                # The log may have had room inside its own length; once refused, always refused.
                refused = [answer for answer in probe.answers if answer.status >= 500]
                assert all(a.status in (201, 503) for a in probe.answers), probe.answers[:5]
                assert all(a.seconds <= REFUSED_WITHIN_S for a in refused)
                probe.seconds_until_a_send_works(RECOVERED_WITHIN_S)

        assert_kept(judge(server, fill_up, Rules(min_acked=1200)), server)

    @pytest.mark.parametrize("block_bytes", [1024, 4096])
    def test_a_store_recovers_from_a_disk_that_another_program_filled(
        tmp_path: Path, make_server: MakeServer, block_bytes: int
    ) -> None:
        """Each byte that is freed may be taken a moment later, at any point."""
        with KernelDisk(tmp_path, block_bytes=block_bytes) as disk:
            server = make_server(disk.mount / "data")
            server.start()
            probe = Probe(server.port)
            probe.make_queue()

            def contend(load: Load) -> None:
                for _ in range(4):
                    load.wait_for_sends(300, within_s=30)
                    ballast = load.fault("no room", disk.fill)
                    with disk.rival():
                        ballast.unlink()
                        disk.fill()
                        probe.send_for(3.0)
                    load.fault("room", ballast.unlink)
                    assert all(a.status in (201, 503) for a in probe.answers), probe.answers[:5]
                    probe.seconds_until_a_send_works(RECOVERED_WITHIN_S)

            assert_kept(judge(server, contend, Rules(min_acked=1200)), server)

    def test_a_file_system_that_turns_read_only_refuses_sends_and_works_after_repair(
        disk: KernelDisk, make_server: MakeServer
    ) -> None:
        server = make_server(disk.mount / "data")
        server.start()
        probe = Probe(server.port)
        probe.make_queue()

        def turn_read_only() -> None:
            # As with power cuts: a sync under way answers "done" for what is lost (measured: 11 of
            # 40 times, bare fdatasync, Linux 6.18).
            server.pause()
            server.wait_until_paused()
            disk.turn_read_only()
            server.resume()

        def turn_and_repair(load: Load) -> None:
            for _ in range(2):
                load.wait_for_sends(300, within_s=30)
                load.fault("read-only", turn_read_only, forgets_leases=True)
                time.sleep(0.3)
                assert_all_refused(probe.send_for(1.5), within_s=REFUSED_WITHIN_S)
                server.kill()
                disk.repair()
                server.start()
            load.wait_for_sends(100, within_s=60)

        assert_kept(judge(server, turn_and_repair, Rules(min_acked=600)), server)
