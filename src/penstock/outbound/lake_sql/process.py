"""The process of one statement: reads the request from stdin, prints the reply, exits.

A statement of a user must not take memory from the program that runs it, block it or crash it.
"""

from __future__ import annotations

import os
import resource
import sys
import threading
import traceback

import msgspec

from penstock.domain.errors import PenstockError
from penstock.outbound.lake_sql.protocol import SqlReply, SqlRequest

_NICENESS = 10
_OVERHEAD_BYTES = 1024**3  # of Python, and of Arrow, which reads ahead outside of DuckDB's limit
_CPU_SPARE_S = 60
_EXIT_ORPHANED = 3
_STDIN = 0


def main() -> None:
    request = msgspec.json.decode(sys.stdin.buffer.readline(), type=SqlRequest)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    _limit_resources(request)
    reply = _run(request)
    sys.stdout.buffer.write(msgspec.json.encode(reply))
    sys.stdout.buffer.flush()


def _run(request: SqlRequest) -> SqlReply:
    from penstock.outbound.lake_sql.datasets import LakeDatasets
    from penstock.outbound.lake_sql.locked_database import run

    try:
        datasets = LakeDatasets(request.lake, request.tables)
        return SqlReply(result=run(request.statement, datasets, request.limits))
    except PenstockError as error:
        return SqlReply(error=str(error))


def _exit_with_parent() -> None:
    """Stdin stays open until the parent has the reply or exits."""
    while os.read(_STDIN, 1):
        pass
    os._exit(_EXIT_ORPHANED)


def _limit_resources(request: SqlRequest) -> None:
    """Limits of the kernel, beyond those of DuckDB."""
    os.nice(_NICENESS)
    cores = os.cpu_count() or 1
    cpu_s = request.limits.timeout_ms // 1000 * cores + _CPU_SPARE_S
    _limit(resource.RLIMIT_CPU, cpu_s)
    _limit(resource.RLIMIT_DATA, request.limits.memory_bytes + _OVERHEAD_BYTES)
    _limit(resource.RLIMIT_FSIZE, 0)
    _limit(resource.RLIMIT_CORE, 0)


def _limit(what: int, most: int) -> None:
    _, hard = resource.getrlimit(what)
    value = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (value, value))


if __name__ == "__main__":
    try:
        main()
    except BaseException:  # a defect: the caller sees that there is no reply
        traceback.print_exc()
        os._exit(1)
    os._exit(0)  # without waiting for threads that still read ahead
