"""Work from a server elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from penstock.client.acts import over_http
from penstock.client.answers import ActResult, RawMessage
from penstock.client.remote import Remote
from penstock.domain.errors import PenstockError, QueueNotFound
from penstock.domain.lease import Verb
from penstock.ports.work import Work, WorkAct

_POLL_S = 0.25
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


class RemoteSource:
    def __init__(self, remote: Remote) -> None:
        self._remote = remote
        self._closed = threading.Event()

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
        found: list[Work] = []
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
        return found, _in_order(finishing, answers, completed)

    def act(self, acts: Sequence[WorkAct]) -> list[PenstockError | None]:
        if not acts:
            return []
        return _refusals(self._remote.act_batch([over_http(act) for act in acts]))

    def listen(self, queues: Sequence[str], callback: Callable[[], None]) -> Callable[[], None]:
        """A server wakes only those who claim, so this is a steady beat: look again."""
        stopped = threading.Event()

        def beat() -> None:
            while not stopped.wait(_POLL_S) and not self._closed.is_set():
                callback()

        threading.Thread(target=beat, name="penstock-listen", daemon=True).start()
        return stopped.set

    def close(self) -> None:
        self._closed.set()


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
        sent_at=(message.sent_at - _EPOCH) // _MS,
        leased_until=((message.leased_until or message.sent_at) - _EPOCH) // _MS,
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
