"""Embedded workers: child processes of the server that run the modules named in the settings."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from functools import partial

from penstock.settings import Settings
from penstock.settings.workers import WorkersSettings
from penstock.supervision.health import NodeHealth, NodePart
from penstock.supervision.threads import SupervisedThread
from penstock.wiring.broker import steady_clock
from penstock.worker.assignment import Assignment
from penstock.worker.processes.file_watch import FileWatch
from penstock.worker.processes.frames import ProcessAssignment
from penstock.worker.processes.supervisor import Supervisor

_log = logging.getLogger("penstock.workers")


class EmbeddedWorkers:
    """They use the store directly and need no key; a worker that exits is restarted."""

    def __init__(self, settings: Settings, health: NodeHealth | None = None) -> None:
        self._drain_ms = settings.server.drain_ms
        names = [name.strip() for name in (settings.workers.modules or "").split(",")]
        count = processes_of(settings.workers, cores=os.cpu_count() or 1)
        work = Assignment(
            queues=(),
            beat_ms=settings.workers.beat_ms,
            max_jobs=settings.workers.max_jobs,
            max_memory_bytes=settings.workers.max_memory_bytes,
        )
        self._is_draining = False
        self._supervisors: dict[str, Supervisor] = {}  # by module name

        def make(name: str) -> Supervisor:
            return Supervisor(
                ProcessAssignment(
                    app=name,
                    url=settings.store_url,
                    work=work,
                    log_level=settings.log.level,
                    log_format=settings.log.format,
                ),
                steady_clock(),
                processes=count,
                on_ready=partial(_log.info, "workers are ready: %s, %d processes", name, count),
                watch=FileWatch(["."]) if settings.workers.reload else None,
            )

        self._threads = [
            SupervisedThread(
                "penstock-workers",
                partial(self._run, name, make),
                health=health or NodeHealth(),
                part=NodePart(f"workers of {name}"),
            )
            for name in names
            if name and count
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def drain(self) -> None:
        self._is_draining = True
        for supervisor in list(self._supervisors.values()):
            supervisor.drain(self._drain_ms)

    async def ended(self) -> None:
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def _run(self, name: str, make: Callable[[str], Supervisor]) -> None:
        if self._is_draining:
            return
        self._supervisors[name] = supervisor = make(name)
        if self._is_draining:  # added since the check above
            supervisor.drain(self._drain_ms)
        if supervisor.run():
            _log.error("cannot start embedded workers; the server runs without them")


def processes_of(workers: WorkersSettings, *, cores: int) -> int:
    """The number of processes for each module."""
    return max(cores // 4, 1) if workers.embedded is None else workers.embedded
