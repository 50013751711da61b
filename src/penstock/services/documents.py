"""Documents: texts stored under a name, for all nodes; and the version that a node uses."""

from __future__ import annotations

from penstock.domain.document import Document
from penstock.domain.limits import SECOND
from penstock.ports.clock import Clock
from penstock.ports.store import Session, Store
from penstock.ports.ticket import Ticket

_UNDER_WAY_MS = 5 * SECOND  # by then a local put was committed or rolled back


class DocumentVersion:
    """A local put takes effect at once, even if a concurrent refresh has read an older version."""

    def __init__(self) -> None:
        self._version = 0
        self._put_at = 0

    def put(self, version: int, *, now: int) -> None:
        """A local put, in a transaction that has not ended yet."""
        self._version = version
        self._put_at = now

    def is_news(self, version: int, *, now: int) -> bool:
        """Whether this stored version is new to the node; records it if so."""
        if version == self._version:
            return False
        if version < self._version and now < self._put_at + _UNDER_WAY_MS:
            return False
        self._version = version
        return True


class DocumentService:
    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def get(self, name: str) -> Ticket[Document | None]:
        return self._store.read(lambda session: session.documents.find(name))

    def put(self, name: str, text: str) -> Ticket[Document]:
        now = self._clock.now()

        def do(session: Session) -> Document:
            return session.documents.put(name, text, now=now)

        return self._store.write(do)

    def remove(self, name: str) -> Ticket[bool]:
        """Returns whether it existed."""
        now = self._clock.now()
        return self._store.write(lambda session: bool(session.documents.remove(name, now=now)))
