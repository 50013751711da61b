"""Jobs from a server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from penstock.client.claim_errors import DamagedQueues, log_failed_claim
from penstock.client.remote.acts import MAX_ACTS, RemoteActs
from penstock.client.remote.server import RawMessage, Remote
from penstock.client.remote.waiting import IdleWorker, LongPolls
from penstock.domain.circuit.circuit import Permitted, Reported
from penstock.domain.datetimes import instant_of
from penstock.domain.errors import PenstockError, QueueNotFound, StoreDamaged
from penstock.worker.application import ActAnswer
from penstock.worker.claimed_job import ClaimedJob, JobAct


class RemoteSource:
    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._lock = threading.Lock()
        self._waiting: list[LongPolls] = []
        self._damaged = DamagedQueues()

    def claim(
        self,
        queues: Sequence[str],
        *,
        limit: int,
        lease_ms: int,
        worker_id: str,
        finishing: Sequence[JobAct] = (),
    ) -> tuple[list[ClaimedJob], list[ActAnswer]]:
        acts = RemoteActs(self._remote, finishing)
        completions = acts.completions(queues)
        acts.send_all_but({place for places in completions.values() for place in places})
        if acts.error is not None:
            acts.check()
            return [], acts.answers()
        waiting = self._waiting_at(queues)
        found = [_work(message) for one in waiting for message in one.take()]
        for queue in queues:
            if len(found) >= limit:
                break
            places = completions.pop(queue, [])
            try:
                results, messages = self._remote.complete_and_claim_raw(
                    queue,
                    acts.receipts(places),
                    limit=limit - len(found),
                    lease_ms=lease_ms,
                    claimed_by=worker_id,
                )
            except QueueNotFound:
                continue
            except StoreDamaged as error:
                self._damaged.skip(queue, error)
                continue
            except (PenstockError, OSError) as error:
                acts.error = error
                break
            acts.answer(places, results)
            found += [_work(message) for message in messages]
        if not isinstance(acts.error, OSError):  # the other acts may still succeed
            acts.send_all_but()
            if len(found) < limit:
                for one in waiting:
                    one.begin(IdleWorker(lease_ms, worker_id))
        if not found:  # the claimed jobs are leased to this worker, which has to run them
            acts.check()
        if isinstance(acts.error, PenstockError):
            log_failed_claim(queue, acts.error)
        return found, acts.answers()

    def act(self, acts: Sequence[JobAct]) -> list[ActAnswer]:
        sent = RemoteActs(self._remote, acts)
        sent.send_all_but()
        sent.check()
        return sent.answers()

    def listen(self, queues: Sequence[str], callback: Callable[[], None]) -> Callable[[], None]:
        """Start with the next claim that returns fewer jobs than its limit."""
        waiting = LongPolls(self._remote, queues, callback)
        with self._lock:
            self._waiting.append(waiting)

        def stop() -> None:
            with self._lock:
                if waiting in self._waiting:
                    self._waiting.remove(waiting)
            waiting.stop()

        return stop

    def permits(self, jobs: Mapping[str, str]) -> Mapping[str, Permitted] | None:
        return self._remote.circuits.permits(jobs)

    def report(self, reports: Sequence[Reported]) -> None:
        for start in range(0, len(reports), MAX_ACTS):
            self._remote.circuits.report(reports[start : start + MAX_ACTS])

    def close(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.stop()

    def _waiting_at(self, queues: Sequence[str]) -> list[LongPolls]:
        """The polls of the worker that claims from these queues; workers may share a source."""
        return [one for one in list(self._waiting) if one.queues <= set(queues)]


def _work(message: RawMessage) -> ClaimedJob:
    return ClaimedJob(
        id=message.id,
        queue=message.queue,
        receipt=message.receipt,
        body=bytes(message.body).decode(),
        sent_at=instant_of(message.sent_at),
        leased_until=instant_of(message.leased_until or message.sent_at),
        attempts=message.attempts,
        failures=message.failures,
        crashes=message.crashes,
        timeout_ms=message.timeout_ms,
        max_attempts=message.max_attempts,
        kind=message.kind,
        entity_id=message.entity_id,
        tags=message.tags,
        group=message.group,
        priority=message.priority,
        attributes=message.attributes or None,
        trace=message.trace,
        route=message.route,
    )
