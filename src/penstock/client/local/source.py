"""Jobs from an in-process store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence

from penstock.api.jobs.attempt_logs import LogPart
from penstock.client.channel import Channel
from penstock.client.claims import DamagedQueues, job_of, log_failed_claim
from penstock.client.resources.attempt_logs import AttemptLogClient
from penstock.domain.circuit.circuit import OutcomeReport, PermitAnswer
from penstock.domain.errors import PenstockError, QueueNotFound, StoreDamaged
from penstock.domain.message.history import tags_of
from penstock.domain.message.lease import LeaseAct
from penstock.domain.message.lifecycle import Content, Message
from penstock.ports.store import Acted
from penstock.ports.unit_of_work import run_steps
from penstock.wiring.broker import Broker
from penstock.worker.application import ActAnswer
from penstock.worker.claimed_job import ClaimedJob, JobAct

_REFRESH_MS = 1_000
_Listener = tuple[frozenset[str], Callable[[], None]]


class LocalSource:
    def __init__(self, broker: Broker, channel: Channel) -> None:
        self._broker = broker
        self._logs = AttemptLogClient(channel)
        self._lock = threading.Lock()
        self._listeners: dict[object, _Listener] = {}
        self._refresh_at = 0
        self._damaged = DamagedQueues()
        broker.listen(self._wake_listeners)

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
        plans = self._plans(finishing)
        acts = [plan for plan in plans if isinstance(plan, LeaseAct)]
        found: list[ClaimedJob] = []
        finished: list[Acted | PenstockError] | None = None
        for queue in queues:
            if len(found) >= limit:
                break
            try:
                claimed = run_steps(
                    self._broker.messages.claim_from(
                        queue,
                        limit=limit - len(found),
                        lease_ms=lease_ms,
                        claimed_by=worker_id,
                        in_a_row=queue in in_a_row,
                        finishing=() if finished is not None else acts,
                    )
                )
            except QueueNotFound:
                continue  # not created yet, or removed
            except StoreDamaged as error:
                self._damaged.skip(queue, error)
                continue
            except PenstockError as error:
                # Jobs of the other queues are leased to this worker, and the acts are done.
                if not found and not finished:
                    raise
                log_failed_claim(queue, error)
                break
            finished = claimed.finished if finished is None else finished
            found += [self._job(queue, *one) for one in claimed.messages]
        if finished is None:  # no queue was claimed from
            finished = self._broker.messages.act(acts).result() if acts else []
        return found, _merge_answers(plans, finished)

    def act(self, acts: Sequence[JobAct]) -> list[ActAnswer]:
        plans = self._plans(acts)
        fit = [plan for plan in plans if isinstance(plan, LeaseAct)]
        return _merge_answers(plans, self._broker.messages.act(fit).result() if fit else [])

    def listen(self, queues: Sequence[str], callback: Callable[[], None]) -> Callable[[], None]:
        token = object()
        with self._lock:
            self._listeners[token] = (frozenset(queues), callback)

        def stop() -> None:
            with self._lock:
                self._listeners.pop(token, None)

        return stop

    def permits(self, jobs: Mapping[str, str]) -> Mapping[str, PermitAnswer] | None:
        circuits = self._broker.circuits
        now = self._broker.clock.now()
        if now >= self._refresh_at:  # duties may not run in this process
            circuits.refresh()
            self._refresh_at = now + _REFRESH_MS
        found = run_steps(circuits.permits_of_jobs(jobs))
        return None if found is None else {one.pattern: one for one in found}

    def keep_logs(self, parts: Sequence[LogPart]) -> list[str]:
        return self._logs.keep(parts)

    def report(self, reports: Sequence[OutcomeReport]) -> None:
        self._broker.circuits.report(reports).result()

    def _wake_listeners(self, woken: Mapping[int, int]) -> None:
        if not self._listeners:
            return
        names = {self._broker.directory.known_name(queue_no) for queue_no in woken}
        with self._lock:
            listeners = list(self._listeners.values())
        for queues, callback in listeners:
            # A queue whose name is not cached yet may be one that they listen to.
            if None in names or not queues.isdisjoint(names):
                callback()

    def _plans(self, acts: Sequence[JobAct]) -> list[LeaseAct | PenstockError]:
        plans: list[LeaseAct | PenstockError] = []
        for act in acts:
            try:
                plans.append(self._plan(act))
            except PenstockError as error:
                plans.append(error)
        return plans

    def _plan(self, act: JobAct) -> LeaseAct:
        messages = self._broker.messages
        return messages.plan(
            messages.read_receipt(act.receipt),
            act.verb,
            delay_ms=act.delay_ms,
            text=act.text,
            progress=act.progress,
            is_start=act.is_start,
            result=act.result,
            signal=act.signal,
        )

    def _job(self, queue: str, message: Message, content: Content) -> ClaimedJob:
        return job_of(
            message,
            queue=queue,
            receipt=self._broker.messages.receipt(message),
            body=content.body,
            sent_at=message.sent_at,
            leased_until=message.due_at,
            tags=tags_of(message),
            attributes=content.attributes,
            trace=content.trace,
        )


def _merge_answers(
    plans: Sequence[LeaseAct | PenstockError], answers: Sequence[Acted | PenstockError]
) -> list[ActAnswer]:
    """An error or None for each act; acts with an invalid plan were never sent to the store."""
    left = iter(answers)
    results = [plan if isinstance(plan, PenstockError) else next(left) for plan in plans]
    return [one if isinstance(one, PenstockError) else None for one in results]
