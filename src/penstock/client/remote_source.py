"""Work from a server elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from penstock.client.acts import over_http
from penstock.client.answers import ActResult, RawMessage
from penstock.client.remote import Remote
from penstock.client.remote_waiting import Idle, Waiting
from penstock.domain.errors import PenstockError, QueueNotFound
from penstock.domain.lease import Verb
from penstock.domain.moments import instant_of
from penstock.ports.work import Work, WorkAct


class RemoteSource:
    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._lock = threading.Lock()
        self._waiting: list[Waiting] = []

    def claim(
        self,
        queues: Sequence[str],
        *,
        limit: int,
        lease_ms: int,
        worker_id: str,
        finishing: Sequence[WorkAct] = (),
    ) -> tuple[list[Work], list[PenstockError | None]]:
        answers = self.act([act for act in finishing if act.verb is not Verb.COMPLETE])
        receipts = [act.receipt for act in finishing if act.verb is Verb.COMPLETE]
        completed: list[PenstockError | None] | None = None if receipts else []
        waiting = self._waiting_at(queues)
        found = [_work(message) for one in waiting for message in one.take()]
        for queue in queues:
            if len(found) >= limit:
                break
            try:
                done, messages = self._remote.turn(
                    queue,
                    receipts if completed is None else (),
                    limit=limit - len(found),
                    lease_ms=lease_ms,
                    claimed_by=worker_id,
                )
            except QueueNotFound:
                continue
            completed = _refusals(done) if completed is None else completed
            found += [_work(message) for message in messages]
        if completed is None:  # no queue was asked
            completed = self.act([a for a in finishing if a.verb is Verb.COMPLETE])
        if len(found) < limit:
            for one in waiting:
                one.begin(Idle(lease_ms, worker_id))
        return found, _in_order(finishing, answers, completed)

    def act(self, acts: Sequence[WorkAct]) -> list[PenstockError | None]:
        if not acts:
            return []
        return _refusals(self._remote.act_batch([over_http(act) for act in acts]))

    def listen(self, queues: Sequence[str], callback: Callable[[], None]) -> Callable[[], None]:
        """From the next claim that leaves something to be wished for."""
        waiting = Waiting(self._remote, queues, callback)
        with self._lock:
            self._waiting.append(waiting)

        def stop() -> None:
            with self._lock:
                if waiting in self._waiting:
                    self._waiting.remove(waiting)
            waiting.stop()

        return stop

    def close(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.stop()

    def _waiting_at(self, queues: Sequence[str]) -> list[Waiting]:
        """Those of whoever claims from these queues; others share this source, too."""
        return [one for one in list(self._waiting) if one.queues <= set(queues)]


def _refusals(results: Sequence[ActResult]) -> list[PenstockError | None]:
    return [result if isinstance(result, PenstockError) else None for result in results]


def _in_order(
    acts: Sequence[WorkAct],
    others: list[PenstockError | None],
    completed: list[PenstockError | None],
) -> list[PenstockError | None]:
    left = {True: iter(completed), False: iter(others)}
    return [next(left[act.verb is Verb.COMPLETE]) for act in acts]


def _work(message: RawMessage) -> Work:
    return Work(
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
    )
