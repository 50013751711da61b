"""Documents of the protocol adapters: texts stored under a name, for all nodes."""

from __future__ import annotations

from penstock.domain.document import Document
from penstock.ports.clock import Clock
from penstock.ports.store import Session, Store
from penstock.ports.ticket import Ticket


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
