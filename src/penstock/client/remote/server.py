"""A server elsewhere, as an object: the native API over HTTP.

    with Remote("http://127.0.0.1:7654") as penstock:
        penstock.send("mail", {"to": "ada@example.org"})
        for message in penstock.claim("mail", wait_ms=20_000):
            penstock.complete(message.receipt)

Refusals are raised as the errors of `penstock.domain.errors`, no answer as `Unreachable`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self, TypeVar, Unpack
from urllib.parse import quote

import msgspec

from penstock.api import health, overview
from penstock.api.health import Readiness
from penstock.api.overview import Stats
from penstock.client.drafts import Act, ActOptions, Draft, SendOptions
from penstock.client.errors import refusal
from penstock.client.nouns.circuits import Circuits
from penstock.client.nouns.history import History
from penstock.client.nouns.moves import Moves
from penstock.client.nouns.queues import Queues
from penstock.client.nouns.routes import Routes
from penstock.client.nouns.scaling import Scaling
from penstock.client.nouns.workers import Workers
from penstock.client.remote.answers import (
    Acted,
    ActResult,
    Message,
    MessagePage,
    RawMessage,
    RawPage,
    SendResult,
    Sent,
)
from penstock.client.remote.messages import RemoteMessages
from penstock.client.remote.notifications import RemoteNotifications
from penstock.client.remote.recurring import RemoteRecurring
from penstock.client.remote.topics import RemoteTopics
from penstock.client.remote.transport import ErrorAnswer, Transport
from penstock.domain.errors import PenstockError
from penstock.domain.limits import DEFAULT_LIMITS
from penstock.domain.message.lease import Verb

A = TypeVar("A")


class _Results(msgspec.Struct):
    results: list[msgspec.Raw]


class _Turn(msgspec.Struct):
    completed: list[msgspec.Raw] = []


_sent = msgspec.json.Decoder(Sent)
_acted = msgspec.json.Decoder(Acted)
_claimed = msgspec.json.Decoder(MessagePage)
_raw = msgspec.json.Decoder(RawPage)
_turn = msgspec.json.Decoder(_Turn)
_results = msgspec.json.Decoder(_Results)


class Remote:
    """Safe to share between threads."""

    def __init__(self, url: str, *, key: str | None = None, timeout: float = 30.0) -> None:
        self._transport = Transport(url, key=key, timeout=timeout)
        self.queues = Queues(self._transport)
        self.moves = Moves(self._transport)
        self.recurring = RemoteRecurring(self._transport)
        self.messages = RemoteMessages(self._transport)
        self.history = History(self._transport)
        self.notifications = RemoteNotifications(self._transport)
        self.topics = RemoteTopics(self._transport)
        self.workers = Workers(self._transport)
        self.routes = Routes(self._transport)
        self.circuits = Circuits(self._transport)
        self.scaling = Scaling(self._transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    def send(self, queue: str, body: object, **options: Unpack[SendOptions]) -> Sent:
        """Returns when it is on disk.  With a `dedup_key` a lost answer is asked for again."""
        draft = Draft(body, **options)
        path = f"/v1/queues/{quote(queue, safe='')}/messages"
        is_safe = draft.dedup_key is not None
        return _sent.decode(self._transport.call("POST", path, body=draft, is_safe=is_safe).body)

    def send_batch(self, queue: str, drafts: Sequence[Draft]) -> list[SendResult]:
        """One transaction; a result or a refusal for each draft, in their order."""
        path = f"/v1/queues/{quote(queue, safe='')}/messages/batch"
        is_safe = all(draft.dedup_key is not None for draft in drafts)
        answer = self._transport.call("POST", path, body={"messages": drafts}, is_safe=is_safe)
        return _each(_results.decode(answer.body).results, Sent)

    def claim(
        self,
        queue: str,
        *,
        limit: int = 1,
        wait_ms: int | None = None,
        lease_ms: int | None = None,
        claimed_by: str | None = None,
        in_a_row: bool = False,
        claim_key: str | None = None,
        kinds: Sequence[str] | None = None,
    ) -> list[Message]:
        """Lease messages; waits up to `wait_ms` for the first, or as long as the queue says.

        With a `claim_key` a lost answer is asked for again.  With `kinds` only messages of these.
        """
        wanted = {
            "limit": limit,
            "wait_ms": wait_ms,
            "lease_ms": lease_ms,
            "claimed_by": claimed_by,
            "in_a_row": in_a_row,
            "claim_key": claim_key,
            "kinds": kinds,
        }
        body = self._claim(queue, wanted, wait_ms, is_safe=claim_key is not None)
        return _claimed.decode(body).messages

    def complete_and_claim(
        self,
        queue: str,
        receipts: Sequence[str],
        *,
        limit: int = 1,
        wait_ms: int | None = None,
        lease_ms: int | None = None,
        claimed_by: str | None = None,
        kinds: Sequence[str] | None = None,
    ) -> tuple[list[ActResult], list[Message]]:
        """What became of the messages that are done, and the next ones, in one round trip."""
        wanted = {
            "complete": receipts,
            "limit": limit,
            "wait_ms": wait_ms,
            "lease_ms": lease_ms,
            "claimed_by": claimed_by,
            "kinds": kinds,
        }
        body = self._claim(queue, wanted, wait_ms)
        return _each(_turn.decode(body).completed, Acted), _claimed.decode(body).messages

    def turn(
        self,
        queue: str,
        receipts: Sequence[str],
        *,
        limit: int,
        lease_ms: int,
        claimed_by: str,
        wait_ms: int = 0,
    ) -> tuple[list[ActResult], list[RawMessage]]:
        """The same for workers: gives bodies as they came."""
        wanted = {
            "complete": receipts,
            "limit": limit,
            "wait_ms": wait_ms,
            "lease_ms": lease_ms,
            "claimed_by": claimed_by,
        }
        body = self._claim(queue, wanted, wait_ms)
        return _each(_turn.decode(body).completed, Acted), _raw.decode(body).messages

    def _claim(
        self,
        queue: str,
        wanted: Mapping[str, object],
        wait_ms: int | None,
        *,
        is_safe: bool = False,
    ) -> bytes:
        path = f"/v1/queues/{quote(queue, safe='')}/claims"
        patience_s = (DEFAULT_LIMITS.max_wait_ms if wait_ms is None else wait_ms) / 1000
        answer = self._transport.call("POST", path, body=wanted, wait_s=patience_s, is_safe=is_safe)
        return answer.body

    def act(self, receipt: str, verb: Verb, **options: Unpack[ActOptions]) -> Acted:
        """Any act on a lease; raises LeaseLost when it is not held any more."""
        body = {name: value for name, value in options.items() if value is not None}
        path = f"/v1/leases/{quote(receipt, safe='')}/{verb}"
        return _acted.decode(self._transport.call("POST", path, body=body).body)

    def complete(self, receipt: str, *, is_late_ok: bool | None = None) -> Acted:
        """With `is_late_ok` also after the lease ran out, until somebody else has the message."""
        return self.act(receipt, Verb.COMPLETE, is_late_ok=is_late_ok)

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
        """A lease of that length from now on; without it, as long as the queue says.

        Past the message's own deadline, which `is_start` counts from now, the attempt is timed out
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
        """The attempt took too long: dead, or failed if the message retries timeouts."""
        return self.act(receipt, Verb.TIME_OUT, error=error, retry_in_ms=retry_in_ms)

    def crash(self, receipt: str, *, error: str | None = None) -> Acted:
        """The worker died with it: back in line, until it has killed too many."""
        return self.act(receipt, Verb.CRASH, error=error)

    def snooze(self, receipt: str, *, delay_ms: int, reason: str | None = None) -> Acted:
        return self.act(receipt, Verb.SNOOZE, delay_ms=delay_ms, reason=reason)

    def bury(self, receipt: str, *, reason: str | None = None) -> Acted:
        return self.act(receipt, Verb.BURY, reason=reason)

    def cancel(self, receipt: str, *, reason: str | None = None) -> Acted:
        return self.act(receipt, Verb.CANCEL, reason=reason)

    def act_batch(self, acts: Sequence[Act]) -> list[ActResult]:
        """One transaction; a result or a refusal for each act, in their order."""
        answer = self._transport.call("POST", "/v1/leases/batch", body={"acts": acts})
        return _each(_results.decode(answer.body).results, Acted)

    def stats(self) -> Stats:
        return self._transport.request(overview.STATS)

    def is_ready(self) -> bool:
        """Does the store behind the server answer?  Raises Unreachable if the server does not."""
        return self.readiness() is not None

    def readiness(self) -> Readiness | None:
        """None: the store behind the server does not answer.  Raises Unreachable."""
        try:
            return self._transport.request(health.READY)
        except PenstockError:
            return None


def _each(answers: list[msgspec.Raw], kind: type[A]) -> list[A | PenstockError]:
    """What was answered for each part of a batch: its result, or why it was refused."""
    results: list[A | PenstockError] = []
    for raw in answers:
        try:
            results.append(msgspec.json.decode(raw, type=kind))
        except msgspec.ValidationError:
            told = msgspec.json.decode(raw, type=ErrorAnswer).error
            results.append(refusal(told.code, told.message))
    return results
