"""A server as an object: the native API over HTTP.

    with Remote("http://127.0.0.1:7654") as penstock:
        penstock.send("mail", {"to": "ada@example.org"})
        for message in penstock.claim("mail", wait_ms=20_000):
            penstock.complete(message.receipt)

Rejections are raised as the errors of `penstock.domain.errors`, a missing answer as `Unreachable`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeVar, Unpack

import msgspec
from msgspec import structs

from penstock.api import leases, messages, overview
from penstock.api.leases import (
    NO_RESULT,
    ActFields,
    ActOptions,
    ActResult,
    Acts,
    BatchAct,
    Claim,
    ClaimOptions,
)
from penstock.api.messages import Acted, Draft, Message, SendOptions, SendResult, Sent
from penstock.api.operation import Operation
from penstock.api.overview import Readiness, Stats
from penstock.client.channel import Channel
from penstock.client.errors import refusal
from penstock.client.remote.transport import Transport
from penstock.client.resources.answers import AnswerClient
from penstock.client.resources.attempt_logs import AttemptLogClient
from penstock.client.resources.circuits import CircuitClient, RouteClient
from penstock.client.resources.errors import ErrorClient
from penstock.client.resources.flows import FlowClient
from penstock.client.resources.messages import HistoryClient, MessageClient
from penstock.client.resources.notifications import NotificationClient
from penstock.client.resources.queues import MoveClient, QueueClient
from penstock.client.resources.recurring import RecurringClient
from penstock.client.resources.topics import TopicClient
from penstock.client.resources.workers import ScalingClient, WorkerClient
from penstock.domain.errors import PenstockError
from penstock.domain.limits import DEFAULT_LIMITS
from penstock.domain.message.lease import Verb

A = TypeVar("A")


class ClaimedMessage(Message, frozen=True, kw_only=True):
    """A message with a receipt, as returned by a claim."""

    receipt: str


class RawMessage(ClaimedMessage, frozen=True, kw_only=True):
    """The same with an undecoded body, for workers."""

    body: msgspec.Raw = msgspec.Raw(b"null")


class _Claimed(msgspec.Struct):
    messages: list[ClaimedMessage]
    completed: list[Any] = []


class _RawClaimed(msgspec.Struct):
    messages: list[RawMessage]
    completed: list[Any] = []


# The contract's claim operation, with its answer decoded as these records.
_CLAIM: Operation[Any] = structs.replace(leases.CLAIM, answer=_Claimed)
_CLAIM_RAW: Operation[Any] = structs.replace(leases.CLAIM, answer=_RawClaimed)


class Remote:
    """Safe to share between threads."""

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 30.0) -> None:
        self._transport = Transport(url, key=key, timeout=timeout)
        self._exchange = self._transport.exchange
        self.channel: Channel = self._transport
        self.queues = QueueClient(self._transport)
        self.moves = MoveClient(self._transport)
        self.flows = FlowClient(self._transport)
        self.recurring = RecurringClient(self._transport)
        self.messages = MessageClient(self._transport)
        self.errors = ErrorClient(self._transport)
        self.history = HistoryClient(self._transport)
        self.attempt_logs = AttemptLogClient(self._transport)
        self.notifications = NotificationClient(self._transport)
        self.topics = TopicClient(self._transport)
        self.workers = WorkerClient(self._transport)
        self.routes = RouteClient(self._transport)
        self.circuits = CircuitClient(self._transport)
        self.scaling = ScalingClient(self._transport)
        self.answers = AnswerClient(self._transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    def send(self, queue: str, body: object, **options: Unpack[SendOptions]) -> Sent:
        """Send a message; returns when it is on disk.

        With a `dedup_key`, the client repeats the request if the answer is lost.
        """
        return self.send_draft(queue, Draft(body, **options))

    def send_draft(self, queue: str, draft: Draft) -> Sent:
        is_safe = draft.dedup_key is not None
        return self._exchange(messages.SEND, {"queue": queue}, draft, is_safe=is_safe)

    def send_batch(self, queue: str, drafts: Sequence[Draft]) -> list[SendResult]:
        """Send in one transaction; returns a result or an error for each draft, in order."""
        is_safe = all(draft.dedup_key is not None for draft in drafts)
        body = {"messages": drafts}
        answer = self._exchange(messages.SEND_BATCH, {"queue": queue}, body, is_safe=is_safe)
        return _results_of_parts(answer.results, Sent)

    def claim(self, queue: str, **options: Unpack[ClaimOptions]) -> list[ClaimedMessage]:
        """Claim messages; waits up to `wait_ms` for the first, by default as the queue is set.

        With a `claim_key`, the request is repeated if its answer is lost.  With `kinds`, only
        messages of these kinds are claimed.
        """
        claimed: _Claimed = self._claim(_CLAIM, queue, Claim(**options))
        return claimed.messages

    def complete_and_claim(
        self,
        queue: str,
        receipts: Sequence[str],
        *,
        results: Mapping[str, Any] | None = None,
        **options: Unpack[ClaimOptions],
    ) -> tuple[list[ActResult], list[ClaimedMessage]]:
        """Complete messages and claim the next ones in one round trip.

        `results`: results of these messages, by receipt.
        """
        wanted = Claim(complete=list(receipts), results=dict(results or {}), **options)
        claimed: _Claimed = self._claim(_CLAIM, queue, wanted)
        return _results_of_parts(claimed.completed, Acted), claimed.messages

    def complete_and_claim_raw(
        self,
        queue: str,
        receipts: Sequence[str],
        *,
        results: Mapping[str, Any] | None = None,
        **options: Unpack[ClaimOptions],
    ) -> tuple[list[ActResult], list[RawMessage]]:
        """The same for workers: bodies stay undecoded."""
        wanted = Claim(complete=list(receipts), results=dict(results or {}), **options)
        claimed: _RawClaimed = self._claim(_CLAIM_RAW, queue, wanted)
        return _results_of_parts(claimed.completed, Acted), claimed.messages

    def _claim(self, operation: Operation[Any], queue: str, wanted: Claim) -> Any:
        wait_ms = DEFAULT_LIMITS.max_wait_ms if wanted.wait_ms is None else wanted.wait_ms
        is_safe = wanted.claim_key is not None
        return self._exchange(
            operation, {"queue": queue}, wanted, wait_s=wait_ms / 1000, is_safe=is_safe
        )

    def act(self, receipt: str, verb: Verb, **options: Unpack[ActOptions]) -> Acted:
        """Apply any act to a lease; raises LeaseLost if it is not held any more."""
        return self._exchange(leases.ACTS[verb], {"receipt": receipt}, ActFields(**options))

    def complete(
        self, receipt: str, *, is_late_ok: bool | None = None, result: Any = NO_RESULT
    ) -> Acted:
        """Complete a message; with `is_late_ok` also after its lease expired, until reclaimed.

        `result`: any JSON value, kept with the history of the message.
        """
        return self.act(receipt, Verb.COMPLETE, is_late_ok=is_late_ok, result=result)

    def fail(
        self, receipt: str, *, error: str | None = None, retry_in_ms: int | None = None
    ) -> Acted:
        return self.act(receipt, Verb.FAIL, error=error, retry_in_ms=retry_in_ms)

    def release(self, receipt: str, *, delay_ms: int = 0) -> Acted:
        return self.act(receipt, Verb.RELEASE, delay_ms=delay_ms)

    def extend(
        self,
        receipt: str,
        *,
        lease_ms: int | None = None,
        is_late_ok: bool | None = None,
        is_start: bool | None = None,
        progress: Any = None,
    ) -> Acted:
        """Extend the lease to that length from now; by default to the queue's lease time.

        Past the message's own deadline, which `is_start` counts from now, the attempt times out
        instead, and LeaseLost is raised.
        """
        return self.act(
            receipt,
            Verb.EXTEND,
            lease_ms=lease_ms,
            is_late_ok=is_late_ok,
            is_start=is_start,
            progress=progress,
        )

    def time_out(
        self, receipt: str, *, error: str | None = None, retry_in_ms: int | None = None
    ) -> Acted:
        """Report that the attempt took too long: dead, or failed if the message retries it."""
        return self.act(receipt, Verb.TIME_OUT, error=error, retry_in_ms=retry_in_ms)

    def crash(self, receipt: str, *, error: str | None = None) -> Acted:
        """Report that a worker crashed on it: ready again, until it has caused too many crashes."""
        return self.act(receipt, Verb.CRASH, error=error)

    def snooze(self, receipt: str, *, delay_ms: int, reason: str | None = None) -> Acted:
        return self.act(receipt, Verb.SNOOZE, delay_ms=delay_ms, reason=reason)

    def bury(self, receipt: str, *, reason: str | None = None) -> Acted:
        return self.act(receipt, Verb.BURY, reason=reason)

    def cancel(self, receipt: str, *, reason: str | None = None) -> Acted:
        return self.act(receipt, Verb.CANCEL, reason=reason)

    def act_batch(self, acts: Sequence[BatchAct]) -> list[ActResult]:
        """Act in one transaction; returns a result or an error for each act, in order."""
        answer = self._exchange(leases.ACT_BATCH, {}, Acts(list(acts)))
        return _results_of_parts(answer.results, Acted)

    def stats(self) -> Stats:
        return self._transport.request(overview.STATS)

    def is_ready(self) -> bool:
        """Whether the server's store answers.  Raises Unreachable if the server does not."""
        return self.readiness() is not None

    def readiness(self) -> Readiness | None:
        """The readiness of the server; None if its store does not answer.  Raises Unreachable."""
        try:
            return self._transport.request(overview.READY)
        except PenstockError:
            return None


def _results_of_parts(answers: list[Any], kind: type[A]) -> list[A | PenstockError]:
    """The server's answer to each part of a batch: a result or an error."""
    results: list[A | PenstockError] = []
    for answer in answers:
        if "error" in answer:
            error = answer["error"]
            results.append(refusal(error["code"], error["message"]))
        else:
            results.append(msgspec.convert(answer, kind))
    return results
