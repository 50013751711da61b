"""Remembers what a claim with a key returned, in the transaction of the claim."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from penstock.domain.message.claim_key import KEPT_MS, ClaimResult, repeat
from penstock.domain.message.lifecycle import Message
from penstock.ports.store import Claim
from penstock.store.verbs.message_changes import MessageChanges
from penstock.store.verbs.transaction_state import TransactionState, json_list, message_of

_given = msgspec.json.Decoder(ClaimResult)


class RepeatableClaims:
    def __init__(self, transaction: TransactionState, changes: MessageChanges) -> None:
        self._transaction = transaction
        self._changes = changes
        self._db = transaction.db

    def lock(self, claims: Iterable[Claim]) -> set[tuple[int, int]]:
        """Lock the keys: a repeated claim waits for the first one to finish.

        Returns queue and number of each message that these keys have returned before.
        """
        keys = {(c.queue_no, c.claim_key): c.now for c in claims if c.claim_key is not None}
        if not keys:
            return set()
        self._db.post("claim_keys.lock", {"keys": json_list(sorted(keys))})
        asked = [
            (no, self._db.ask("claim_keys.find", {"queue_no": no, "claim_key": key, "now": now}))
            for (no, key), now in keys.items()
        ]
        return {
            (no, message_no)
            for no, answer in asked
            for text, _ in answer.rows()
            for message_no, _ in _given.decode(text).leases
        }

    def again(self, claim: Claim, *, now: int, lease_ms: int) -> list[Message] | None:
        """What this key has returned before, or None; raises ClaimNotRepeatable."""
        if claim.claim_key is None:
            return None
        params = {"queue_no": claim.queue_no, "claim_key": claim.claim_key, "now": now}
        rows = self._db.rows("claim_keys.find", params)
        if not rows:
            return None
        [(text, until_at)] = rows
        given = _given.decode(text)
        nos = json_list(sorted(message_no for message_no, _ in given.leases))
        rows = self._db.rows("messages.by_no", {"message_nos": nos})
        found = {m.message_no: m for m in map(message_of, rows)}
        messages = repeat(given, found, now=now, lease_ms=lease_ms)
        for message in messages:
            self._changes.note(found[message.message_no], message, now=now)
        self._changes.save()
        self._keep(claim, messages, until_at)
        return messages

    def remember(self, claim: Claim, messages: Sequence[Message], *, now: int) -> None:
        """An empty result is not remembered: the repeated claim may get messages."""
        if claim.claim_key is not None and messages:
            self._keep(claim, messages, now + KEPT_MS)

    def _keep(self, claim: Claim, messages: Sequence[Message], until_at: int) -> None:
        given = msgspec.json.encode(ClaimResult.of(messages)).decode()
        row = (claim.queue_no, claim.claim_key, given, until_at)
        self._db.insert("claim_keys.keep", [row])
