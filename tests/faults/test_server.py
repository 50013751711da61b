"""The harness on trial: a broker under test never outlives its test."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.faults.conftest import MakeServer
from tests.faults.server import EXIT_ORPHANED, ROOT
from tests.support.processes import is_alive

OWNER = """
import sys, time
from pathlib import Path
from tests.faults.server import Server
server = Server(Path(sys.argv[1]) / "data", Path(sys.argv[1]) / "log")
server.start()
print(server.process.pid, flush=True)
time.sleep(60)
"""


def test_a_broker_ends_when_its_test_lets_go_of_it(make_server: MakeServer) -> None:
    server = make_server()
    server.start()

    server.let_go()

    assert server.wait_for_end(30) == EXIT_ORPHANED


def test_a_broker_ends_when_its_test_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())

        owner.send_signal(signal.SIGKILL)

    deadline = time.monotonic() + 30
    while is_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not is_alive(pid)
