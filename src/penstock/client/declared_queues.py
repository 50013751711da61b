"""Queue settings that an application declares, and which of them its store has been given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from penstock.client.backend import Backing
from penstock.client.jobs.job import Job
from penstock.domain.duration import duration_text
from penstock.domain.errors import InvalidRequest
from penstock.domain.queue.queue import QueueSettings, check_name


class DeclaredQueues:
    """Safe to share between threads: applying a declaration twice does no harm."""

    def __init__(self) -> None:
        self._settings: dict[str, dict[str, Any]] = {}
        self._applied: tuple[Backing | None, set[str]] = (None, set())

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings)

    def __contains__(self, queue: str) -> bool:
        return queue in self._settings

    def of(self, queue: str) -> Mapping[str, Any]:
        return self._settings.get(queue, {})

    def add(self, queue: str, settings: Mapping[str, Any]) -> None:
        self._settings.setdefault(check_name(queue), {}).update(settings)

    def raise_attempts(self, queue: str, max_attempts: int) -> None:
        """Raise what a queue is declared with, or what it has by default; never lower it."""
        settings = self._settings.setdefault(check_name(queue), {})
        limit = settings.get("max_attempts", QueueSettings().max_attempts)
        if limit is not None and limit < max_attempts:
            settings["max_attempts"] = max_attempts

    def add_window(self, job: Job[..., Any]) -> None:
        """Of a unique job; raises InvalidRequest if another job of its queue has another one."""
        window_ms = None if job.unique is None else job.unique.window_ms
        if window_ms is None:
            return
        settings = self._settings.setdefault(job.queue, {})
        if settings.setdefault("dedup_window_ms", window_ms) != window_ms:
            raise InvalidRequest(
                f"queue {job.queue!r} has one dedup_window: "
                f"{duration_text(settings['dedup_window_ms'])}, and not that of job {job.kind!r}"
            )

    def apply(self, backing: Backing, queue: str) -> None:
        """Once for each backing."""
        applied = self._applied_to(backing)
        if queue not in applied:
            backing.declare(queue, self.of(queue))
            applied.add(queue)

    async def apply_async(self, backing: Backing, queue: str) -> None:
        applied = self._applied_to(backing)
        if queue not in applied:
            await backing.declare_async(queue, self.of(queue))
            applied.add(queue)

    def _applied_to(self, backing: Backing) -> set[str]:
        known, names = self._applied
        if known is not backing:
            names = set()
            self._applied = (backing, names)
        return names
