"""The entry point of the processes of a node.

    python -m penstock.edge.node.process NAME FD

FD is the number of a socket to the supervisor, which sends what the process is; the name is for
people who list processes.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

from penstock.domain.errors import PenstockError
from penstock.edge.node.control import WRITER, ControlChannel, NodeAssignment, ProcessFailed
from penstock.edge.node.front import run_front
from penstock.edge.node.writer import run_writer
from penstock.ports.link import pack_error
from penstock.supervision.logs import set_up_logs

FAILED = 1


def main() -> int:
    fd = int(sys.argv[2])
    os.set_inheritable(fd, False)
    # Ctrl-C and a service manager signal all processes; the supervisor decides what happens.  Not
    # SIG_IGN, which workers and programs that this process starts would inherit.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    channel = ControlChannel(socket.socket(fileno=fd))
    assignment, _ = channel.receive()
    if not isinstance(assignment, NodeAssignment):
        return FAILED  # the supervisor has exited already
    log = assignment.settings.log
    set_up_logs(log.level, log.format)
    run = run_writer if assignment.number == WRITER else run_front
    try:
        run(assignment, channel)
    except PenstockError as error:
        channel.send(ProcessFailed(pack_error(error)))
        return FAILED
    except OSError as error:
        file = None if error.filename is None else str(error.filename)
        system = (error.errno or 0, error.strerror or str(error), file)
        channel.send(ProcessFailed(pack_error(error), system))
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
