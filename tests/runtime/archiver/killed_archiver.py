"""Archives until it is killed.  `python -m tests.runtime.archiver.killed_archiver SETTINGS`

Every line on its input starts one archiver in a process of its own: a number, at whose step it
kills itself (a step is any touch of the store or of the lake); or nothing, and it runs until it
is killed from outside.  Its process number is the first line of output, how it ended the second.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec
import pyarrow

from penstock.outbound import lake_files
from penstock.runtime.archiver import archiver as archiving
from penstock.runtime.archiver import snapshots
from penstock.settings import Settings
from penstock.wiring.broker import Broker, open_broker
from penstock.wiring.lake_writers import LakeWriters, open_lake_writers

T = TypeVar("T")
_FILE = ("add", "keep", "discard")
_SYSTEM = ("fsync", "rename", "unlink", "open")


class Steps:
    def __init__(self, last: int) -> None:
        self._left = last

    def step(self) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def before(self, what: Callable[..., T]) -> Callable[..., T]:
        def do(*args: Any, **more: Any) -> T:
            self.step()
            return what(*args, **more)

        return do


def open_small(broker: Broker) -> LakeWriters:
    """With small pages and files, so that there are many steps."""
    for module in (archiving, snapshots):
        vars(module)["PAGE"] = 2
    snapshots.ROWS_PER_FILE = 3
    archive = open_lake_writers(broker, pause=lambda ms: threading.Event().wait(ms / 1000))
    archive.archiver._most = 5
    return archive


def _die_at(last: int, broker: Broker) -> None:
    steps = Steps(last)
    for name in ("read", "write"):
        setattr(broker.store, name, steps.before(getattr(broker.store, name)))
    for name in _FILE:
        setattr(lake_files._File, name, steps.before(getattr(lake_files._File, name)))
    for name in _SYSTEM:
        setattr(os, name, steps.before(getattr(os, name)))


def _archive(settings: Settings, last: int | None) -> None:
    broker = open_broker(settings)
    archive = open_small(broker)
    if last is not None:
        _die_at(last, broker)
        archive.archiver.run()
        archive.snapshots.take()
        return
    while True:
        archive.archiver.run()
        archive.snapshots.take()


def main() -> None:
    settings = msgspec.json.decode(sys.argv[1], type=Settings)
    pyarrow.array([1])  # whatever that loads is loaded once, and not by every child
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                _archive(settings, int(line) if line.strip() else None)
                code = 0
            finally:
                sys.stderr.flush()
                os._exit(code)
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
