"""Completes and signs SNS's envelopes when they go out.

The key pair is a document of the store, generated when the first subscription asks for envelopes,
and the same for all nodes.
"""

from __future__ import annotations

import hashlib

from penstock.domain.bus import envelope
from penstock.ports.clock import Clock
from penstock.ports.signatures import KeyPair, KeyPairs
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Work, read

KEY_PAIR = "sns_key_pair"
_MAX_CACHED = 4_096  # signatures: an event is often delivered several times at about the same time


class EnvelopeSigner:
    def __init__(self, store: Store, clock: Clock, key_pairs: KeyPairs) -> None:
        self._store = store
        self._clock = clock
        self._key_pairs = key_pairs
        self._key_pair: KeyPair | None = None
        self._signatures: dict[bytes, str] = {}  # by digest: texts may be large

    @property
    def is_loaded(self) -> bool:
        return self._key_pair is not None

    @property
    def certificate(self) -> str:
        """Empty as long as no subscription has asked for envelopes."""
        return "" if self._key_pair is None else self._key_pair.certificate

    def load(self) -> Work[None]:
        """Read the key pair, unless that was done."""

        def do(session: Session) -> None:
            if self._key_pair is None:
                found = session.documents.find(KEY_PAIR)
                self._key_pair = None if found is None else self._key_pairs.read(found.text)

        return read(self._store, do)

    def ensure(self, session: Session) -> None:
        """Generate the key pair in a transaction that makes the first subscription to envelopes."""
        if session.documents.find(KEY_PAIR) is not None:
            return
        now = self._clock.now()
        if session.documents.lock(KEY_PAIR, now=now) is None:
            session.documents.put(KEY_PAIR, self._key_pairs.generate(now=now), now=now)

    def complete(self, text: str, *, base: str) -> str:
        """The envelope as it goes out from this address; `load` comes first."""
        return envelope.complete(text, base=base, sign=self._sign, secret=self._store.secret)

    def unsubscribe_token(self, subscription_arn: str) -> str:
        return envelope.unsubscribe_token(subscription_arn, self._store.secret)

    def _sign(self, text: str, version: str) -> str:
        if self._key_pair is None:
            return ""
        key = hashlib.sha256(f"{version} {text}".encode()).digest()
        found = self._signatures.get(key)
        if found is None:
            found = self._key_pair.sign(text, version)
            if len(self._signatures) >= _MAX_CACHED:
                self._signatures.clear()
            self._signatures[key] = found
        return found
