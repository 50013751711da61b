"""One run: queues, load, faults, drain, verdict."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.faults.checker import Rules, Verdict, check
from tests.faults.drain import drain
from tests.faults.load import Load
from tests.faults.server import Server
from tests.faults.workload import FIFO, STANDARD, Workload

DRAIN_S = 60.0
SHARED_CLOCK_SLACK_S = 0.05  # each node measures the database's time for itself


def judge(
    server: Server,
    faults: Callable[[Load], None],
    rules: Rules,
    *,
    workload: Workload | None = None,
    ports: Sequence[int] = (),
    seed: int = 1,
) -> Verdict:
    """Run the faults under load and check what the clients saw; the server must be up after them.

    `ports` are where the clients connect, when that is not (only) the server itself.
    """
    load = Load(ports or [server.port], workload or Workload(), seed=seed)
    load.make_queues()
    with load:
        faults(load)
    totals = drain(server.port, load.history, (STANDARD, FIFO), within_s=DRAIN_S)
    verdict = check(load.history, totals, rules)
    print(verdict)
    return verdict


def assert_kept(verdict: Verdict, *servers: Server) -> None:
    words = "".join(server.stderr_tail(1500) for server in servers)
    assert verdict.is_clean, f"\n{verdict}\n--- end of its log ---\n{words}"


def two_nodes(first: Server, second: Server) -> tuple[Server, Server]:
    first.start()
    second.start()
    return first, second


def on_faulty_disk(data: Path, **options: Any) -> dict[str, Any]:
    """Options for a server whose SQLite lives on the faulty disk; a sync takes a millisecond."""
    return {"data": str(data), "trouble": {"sync_s": 0.001}, **options}
