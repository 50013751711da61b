"""Checks that an API key for some queues may use the job routes that its caller names.

All queues whose jobs name a route share its circuit.  So the caller must name a job with that
route in one of the key's queues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress

from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.errors import MessageNotFound, QueueNotFound
from penstock.domain.message.lifecycle import Message, State
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Work, read
from penstock.services.message_views import view_of_id

Covers = Callable[[str], bool]  # whether a key covers the queue of this name


class JobRoutes:
    def __init__(self, store: Store) -> None:
        self._store = store

    def claimed(self, ids: Iterable[str], *, covers: Covers) -> Work[set[str]]:
        """The circuits of those jobs that are leased now, in queues of the key."""

        def do(session: Session) -> set[str]:
            found: set[str] = set()
            for job_id in dict.fromkeys(ids):
                message = session.messages.find(job_id)
                if message is None or message.state is not State.LEASED or message.route is None:
                    continue
                with suppress(QueueNotFound):
                    if covers(session.queues.get(message.queue_no).name):
                        found.add(circuit_hash(message.route))
            return found

        return read(self._store, do)

    def circuits_of(self, ids: Iterable[str], *, covers: Covers) -> Work[dict[str, str]]:
        """The circuit of each of these jobs, live or ended, in queues of the key."""

        def do(session: Session) -> dict[str, str]:
            found: dict[str, str] = {}
            for job_id in dict.fromkeys(ids):
                with suppress(MessageNotFound, QueueNotFound):
                    view = view_of_id(session, job_id)
                    # A dead letter is still a job of the queue it died in.
                    is_dead_letter = isinstance(view.message, Message) and view.message.dead_from
                    queue = view.dead_from if is_dead_letter else view.queue
                    if view.message.route is not None and queue is not None and covers(queue):
                        found[job_id] = circuit_hash(view.message.route)
            return found

        return read(self._store, do)
