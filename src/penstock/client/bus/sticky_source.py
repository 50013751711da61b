"""A job source that also claims from the queue of a worker's own events."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from penstock.api.jobs.attempt_logs import LogPart
from penstock.domain.bus.topic import node_queue_name
from penstock.domain.circuit.circuit import OutcomeReport, PermitAnswer
from penstock.worker.application import ActAnswer, JobSource
from penstock.worker.claimed_job import ClaimedJob, JobAct


class StickySource:
    """Claims from the worker's own queue before the shared one.

    That queue exists only after this process has published, and is not claimed from before.
    """

    def __init__(self, source: JobSource, queues: frozenset[str]) -> None:
        self._source = source
        self._queues = queues
        self._callbacks: dict[object, Callable[[], None]] = {}
        self._has_published = False
        self.worker_id: str | None = None

    def is_for(self, source: JobSource, queues: frozenset[str]) -> bool:
        return self._source is source and self._queues == queues

    def claim(
        self,
        queues: Sequence[str],
        *,
        limit: int,
        lease_ms: int,
        worker_id: str,
        finishing: Sequence[JobAct] = (),
        in_a_row: Collection[str] = (),
    ) -> tuple[list[ClaimedJob], list[ActAnswer]]:
        self.worker_id = worker_id
        return self._source.claim(
            list(self._with_own(queues)),
            limit=limit,
            lease_ms=lease_ms,
            worker_id=worker_id,
            finishing=finishing,
            in_a_row=in_a_row,
        )

    def act(self, acts: Sequence[JobAct]) -> list[ActAnswer]:
        return self._source.act(acts)

    def listen(self, queues: Sequence[str], callback: Callable[[], None]) -> Callable[[], None]:
        token = object()
        stop = self._source.listen(queues, callback)
        self._callbacks[token] = callback

        def stop_both() -> None:
            self._callbacks.pop(token, None)
            stop()

        return stop_both

    def permits(self, jobs: Mapping[str, str]) -> Mapping[str, PermitAnswer] | None:
        return self._source.permits(jobs)

    def keep_logs(self, parts: Sequence[LogPart]) -> list[str]:
        return self._source.keep_logs(parts)

    def report(self, reports: Sequence[OutcomeReport]) -> None:
        self._source.report(reports)

    def published(self) -> None:
        """Note that this process has published: the worker's own queue may have messages."""
        if self.worker_id is not None:
            self._has_published = True
            for callback in list(self._callbacks.values()):
                callback()

    def _with_own(self, queues: Sequence[str]) -> Iterable[str]:
        for queue in queues:
            if self._has_published and self.worker_id is not None and queue in self._queues:
                yield node_queue_name(queue, self.worker_id)
            yield queue
