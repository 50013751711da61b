"""What became of a message: its state, and its result once it is done."""

from __future__ import annotations

from penstock.domain.errors import MessageNotFound
from penstock.domain.message.result import MessageResult
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Work, read


class ResultService:
    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, message_id: str) -> Work[MessageResult]:
        """Raises MessageNotFound."""

        def do(session: Session) -> MessageResult:
            found = session.results.of([message_id]).get(message_id)
            if found is None:
                raise MessageNotFound(message_id)
            return found

        return read(self._store, do)
