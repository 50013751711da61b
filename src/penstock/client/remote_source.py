"""Work from a server elsewhere."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from penstock.client.acts import over_http
from penstock.client.answers import ActResult, RawMessage
from penstock.client.remote import Remote
from penstock.client.remote_waiting import Idle, Waiting
from penstock.domain.circuit import Permitted, Reported
from penstock.domain.errors import PenstockError, QueueNotFound
from penstock.domain.lease import Verb
from penstock.domain.moments import instant_of
from penstock.ports.work import Work, WorkAct

_log = logging.getLogger("penstock.client")
_MOST_ACTS = 250  # in one request, whatever they say: a server limits their number and size


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
        others = [act for act in finishing if act.verb is not Verb.COMPLETE]
        completions = [act for act in finishing if act.verb is Verb.COMPLETE]
        completions, too_many = completions[:_MOST_ACTS], completions[_MOST_ACTS:]
        answers = self.act([*others, *too_many])
        receipts = [act.receipt for act in completions]
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
            except (PenstockError, OSError) as error:
                # What was given is leased to us: nobody would run it, and it lost an attempt.
                if completed is None or not found:
                    self._give_back(found)
                    raise
                _log.warning("cannot claim from %r: %s", queue, error)
                break
            completed = _refusals(done) if completed is None else completed
            found += [_work(message) for message in messages]
        if completed is None:  # no queue was asked
            completed = self.act(completions)
        if len(found) < limit:
            for one in waiting:
                one.begin(Idle(lease_ms, worker_id))
        completed += answers[len(others) :]
        return found, _in_order(finishing, answers[: len(others)], completed)

    def act(self, acts: Sequence[WorkAct]) -> list[PenstockError | None]:
        answers: list[PenstockError | None] = []
        for start in range(0, len(acts), _MOST_ACTS):
            some = acts[start : start + _MOST_ACTS]
            answers += _refusals(self._remote.act_batch([over_http(act) for act in some]))
        return answers

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

    def permits(self, routes: Sequence[str]) -> Mapping[str, Permitted] | None:
        return self._remote.circuits.permits(routes)

    def report(self, reports: Sequence[Reported]) -> None:
        for start in range(0, len(reports), _MOST_ACTS):
            self._remote.circuits.report(reports[start : start + _MOST_ACTS])

    def close(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        for one in waiting:
            one.stop()

    def _give_back(self, found: Sequence[Work]) -> None:
        """As far as the server can be reached; otherwise the leases run out."""
        releases = [WorkAct(receipt=work.receipt, verb=Verb.RELEASE) for work in found]
        with suppress(PenstockError, OSError):
            self.act(releases)

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
        route=message.route,
    )
