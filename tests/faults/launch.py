"""Runs the broker's own command line inside this process, on a faulty disk or a shifted clock.

    python -m tests.faults.launch '{"data": ...}' CONTROL_FD serve --data ... --port ...

The control socket steers the faults; when the test at its other end dies, so does the broker.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import random
import signal
import socket
import sys
import threading
import time
from pathlib import Path
from typing import Any

import apsw

from penstock.edge.node import supervisor
from tests.faults import unsafe_sqlite
from tests.faults.directory import Directory, Names
from tests.faults.disk import Loss
from tests.faults.disk_faults import DiskFaults
from tests.faults.faulty_vfs import Connection, FaultyVFS, watch_directory_syncs
from tests.faults.server import EXIT_ORPHANED, EXIT_POWER_CUT

MAIN = "penstock.edge.cli.main:main"  # PENSTOCK_FAULTS_MAIN tries the harness on something else


class Machine:
    """The simulated computer of the broker: its disk, its power, its clock."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.clock_shift_s = float(options.get("clock_shift_s", 0.0))
        self.loss = Loss(options.get("loss", Loss.EVERYTHING))
        self.names = Names(options.get("names", Names.EXT4))
        self.seed = int(options.get("seed", 0))
        self.trouble = DiskFaults(self.cut_power, self.seed)
        self.vfs: FaultyVFS | None = None
        if "data" in options:
            self.vfs = FaultyVFS(Directory(Path(options["data"]).absolute()), self.trouble)
            watch_directory_syncs(self.vfs)
            apsw.Connection = Connection  # type: ignore[misc]
        self.set(options.get("trouble", {}))

    def set(self, values: dict[str, Any]) -> None:
        for name, value in values.items():
            target = self if hasattr(self, name) else self.trouble
            if not hasattr(target, name):
                raise AttributeError(f"nothing to set by the name of {name}")
            setattr(target, name, value)

    def cut_power(self) -> None:
        assert self.vfs is not None, "only a broker on the faulty disk can lose power"
        with self.vfs.lock:
            dice = random.Random(self.seed)
            self.vfs.directory.lose_power(Loss(self.loss), Names(self.names), dice)
            os._exit(EXIT_POWER_CUT)

    def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        self.set(order.get("set", {}))
        if order.get("cut"):
            self.cut_power()
        return {name: getattr(self.trouble, name) for name in order.get("get", [])}


def shift_clock(machine: Machine) -> None:
    """Wall clocks jump; the monotonic clock never does."""
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + machine.clock_shift_s
    time.time_ns = lambda: real_ns() + int(machine.clock_shift_s * 1e9)


def obey_from(control: socket.socket, machine: Machine) -> None:
    with control.makefile("rw") as stream:
        for line in stream:
            try:
                answer = machine.obey(json.loads(line))
            except Exception as error:
                answer = {"error": repr(error)}
            stream.write(json.dumps(answer) + "\n")
            stream.flush()
    os._exit(EXIT_ORPHANED)


def main() -> None:
    faulthandler.register(signal.SIGUSR1)  # a test that finds it stuck asks where
    options = json.loads(sys.argv[1])
    control = socket.socket(fileno=int(sys.argv[2]))
    machine = Machine(options)
    shift_clock(machine)
    unsafe_sqlite.begin(options.get("pretend", ""))
    threading.Thread(target=obey_from, args=(control, machine), daemon=True).start()
    # The processes of a node get the same disk.
    supervisor.COMMAND = (sys.executable, "-m", "tests.faults.launch_process", sys.argv[1])
    sys.argv = ["penstock", *sys.argv[3:]]
    module, function = os.environ.get("PENSTOCK_FAULTS_MAIN", MAIN).split(":")
    code = getattr(importlib.import_module(module), function)()
    sys.exit(code)


if __name__ == "__main__":
    main()
