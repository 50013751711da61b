"""Tests of the harness: a broker under test never outlives its test."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.faults.conftest import MakeServer
from tests.faults.server import EXIT_ORPHANED, ROOT
from tests.support.processes import is_alive
from tests.support.waiting import eventually

OWNER = """
import sys, time
from pathlib import Path
from tests.faults.server import Server
server = Server(Path(sys.argv[1]) / "data", Path(sys.argv[1]) / "log")
server.start()
print(server.process.pid, flush=True)
time.sleep(60)
"""


def test_a_broker_exits_when_its_test_closes_the_control_socket(make_server: MakeServer) -> None:
    server = make_server()
    server.start()

    server.close_control()

    assert server.wait_for_end(30) == EXIT_ORPHANED


def test_a_broker_exits_when_its_test_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())

        owner.send_signal(signal.SIGKILL)

    eventually(lambda: not is_alive(pid), within_s=30)
