"""Jobs from a server.

The acts of one exchange are sent in several requests and answered in order.  A request may fail
after others were answered.  Those answers count; the acts of the failed request and of those after
it are marked as `Unanswered`, so that the worker sends them again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from penstock.api.jobs.attempt_logs import LogPart
from penstock.api.leases import FIELDS_OF, NO_RESULT, ActResult, BatchAct
from penstock.client.claims import DamagedQueues, job_of, log_failed_claim
from penstock.client.remote.server import RawMessage, Remote
from penstock.client.remote.waiting import IdleWorker, LongPolls
from penstock.domain.circuit.circuit import OutcomeReport, PermitAnswer
from penstock.domain.datetimes import instant_of
from penstock.domain.errors import PenstockError, QueueNotFound, StoreDamaged
from penstock.domain.message.lease import Verb
from penstock.worker.application import ActAnswer, Unanswered
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
        in_a_row: Collection[str] = (),
    ) -> tuple[list[ClaimedJob], list[ActAnswer]]:
        acts = RemoteActs(self._remote, finishing)
        completions = acts.completions(queues)
        acts.send_all_but({place for places in completions.values() for place in places})
        if acts.error is not None:
            acts.check()
            return [], acts.answers()
        waiting = self._waiting_at(queues)
        found = [_job(message) for one in waiting for message in one.take()]
        for queue in queues:
            if len(found) >= limit:
                break
            places = completions.pop(queue, [])
            try:
                results, messages = self._remote.complete_and_claim_raw(
                    queue,
                    acts.receipts(places),
                    results=acts.results(places),
                    limit=limit - len(found),
                    wait_ms=0,
                    lease_ms=lease_ms,
                    claimed_by=worker_id,
                    in_a_row=queue in in_a_row,
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
            found += [_job(message) for message in messages]
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

    def permits(self, jobs: Mapping[str, str]) -> Mapping[str, PermitAnswer] | None:
        return self._remote.circuits.permits(jobs)

    def keep_logs(self, parts: Sequence[LogPart]) -> list[str]:
        return self._remote.attempt_logs.keep(parts)

    def report(self, reports: Sequence[OutcomeReport]) -> None:
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


def _job(message: RawMessage) -> ClaimedJob:
    return job_of(
        message,
        queue=message.queue,
        receipt=message.receipt,
        body=bytes(message.body).decode(),
        sent_at=instant_of(message.sent_at),
        leased_until=instant_of(message.leased_until or message.sent_at),
        tags=message.tags,
        attributes=message.attributes or None,
        trace=message.trace,
    )


MAX_ACTS = 250  # per request: the server limits their number and size
_MAX_RESULT_CHARS = 1024 * 1024


class RemoteActs:
    """`places` are positions in the sequence of acts."""

    def __init__(self, remote: Remote, acts: Sequence[JobAct]) -> None:
        self._remote = remote
        self._acts = acts
        self._answers: dict[int, ActAnswer] = {}
        self.error: PenstockError | OSError | None = None  # the first request that failed

    def completions(self, queues: Collection[str]) -> dict[str, list[int]]:
        """The completions that may go with a claim, by queue; a server takes no others there."""
        found: dict[str, list[int]] = {}
        for place, act in enumerate(self._acts):
            if act.verb is Verb.COMPLETE and act.queue is not None and act.queue in queues:
                found.setdefault(act.queue, []).append(place)
        return {queue: self._portion(places) for queue, places in found.items()}

    def receipts(self, places: Sequence[int]) -> list[str]:
        return [self._acts[place].receipt for place in places]

    def results(self, places: Sequence[int]) -> dict[str, msgspec.Raw]:
        acts = [self._acts[place] for place in places]
        return {act.receipt: _raw(act.result) for act in acts if act.result is not None}

    def _portion(self, places: Sequence[int]) -> list[int]:
        """The first of these acts, as many as one request takes, but at least one."""
        chars = 0
        for count, place in enumerate(places[:MAX_ACTS]):
            chars += len(self._acts[place].result or "")
            if count and chars > _MAX_RESULT_CHARS:
                return list(places[:count])
        return list(places[:MAX_ACTS])

    def answer(self, places: Sequence[int], results: Sequence[ActResult]) -> None:
        for place, result in zip(places, results, strict=True):
            self._answers[place] = result if isinstance(result, PenstockError) else None

    def send_all_but(self, later: Collection[int] = ()) -> None:
        """Send the acts that have no answer yet; stops at the first request that fails."""
        places = [
            place
            for place in range(len(self._acts))
            if place not in later and place not in self._answers
        ]
        while places:
            some = self._portion(places)
            places = places[len(some) :]
            try:
                results = self._remote.act_batch([_record(self._acts[place]) for place in some])
            except (PenstockError, OSError) as error:
                self.error = self.error or error
                return
            self.answer(some, results)

    def check(self) -> None:
        """Raises the error of a failed request, unless others were answered."""
        if self.error is not None and not self._answers:
            raise self.error

    def answers(self) -> list[ActAnswer]:
        missing = Unanswered(str(self.error))
        return [self._answers.get(place, missing) for place in range(len(self._acts))]


def _record(act: JobAct) -> BatchAct:
    progress = None if act.progress is None else _raw(act.progress)
    values: dict[str, Any] = {
        "error": act.text,
        "reason": act.text,
        "retry_in_ms": act.delay_ms,
        "delay_ms": act.delay_ms,
        "lease_ms": act.delay_ms,
        "is_start": act.is_start or None,
        "progress": progress,
        "signal": act.signal,
    }
    fields = {name: values.get(name) for name in FIELDS_OF[act.verb]}
    if act.verb is Verb.COMPLETE:
        fields["result"] = NO_RESULT if act.result is None else _raw(act.result)
    return BatchAct(act.receipt, act.verb, **fields)


def _raw(text: str) -> msgspec.Raw:
    return msgspec.Raw(text.encode())
