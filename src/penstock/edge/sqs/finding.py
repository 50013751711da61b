"""Queues by the URLs that clients send, and whether the caller may do what it asks for."""

from __future__ import annotations

from penstock.domain import access
from penstock.domain.access import ANYONE, Role
from penstock.domain.errors import QueueNotFound
from penstock.domain.queue import Queue
from penstock.edge.sqs import names
from penstock.edge.sqs.asked import Asked
from penstock.edge.sqs.errors import access_denied, queue_does_not_exist
from penstock.services.directory import Directory

_ANY = frozenset(Role)
_LONG_URL = 300  # longer ones are not worth remembering
_MOST_NAMES = 4_096


class Finder:
    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._names: dict[str | None, str] = {}  # by URLs that were read before

    def known(self, asked: Asked, role: Role) -> Queue | None:
        """The queue if it was seen a moment ago; a caller without the role is refused."""
        name = self._names.get(asked.input.QueueUrl) or self._read_name(asked)
        if asked.caller is not ANYONE:
            access.allow(asked.caller, role, name)
        return self._directory.cached(name)

    async def queue(self, asked: Asked, role: Role | None = None) -> Queue:
        """Raises QueueDoesNotExist or AccessDenied; without a role, any key for it will do."""
        return await self.named(asked, asked.queue_name, role)

    async def named(self, asked: Asked, name: str, role: Role | None = None) -> Queue:
        allow(asked, role, name)
        found = self._directory.cached(name)
        if found is not None:
            return found
        if not names.is_possible(name):
            raise queue_does_not_exist()
        try:
            return await self._directory.load(name)
        except QueueNotFound:
            raise queue_does_not_exist() from None

    async def name_of(self, queue_no: int) -> str | None:
        """None for a queue that is gone."""
        try:
            return self.known_name(queue_no) or await self._directory.name_of(queue_no)
        except QueueNotFound:
            return None

    def known_name(self, queue_no: int) -> str | None:
        return self._directory.known_name(queue_no)

    def forget(self, queue: Queue) -> None:
        self._directory.forget(queue.name)

    def _read_name(self, asked: Asked) -> str:
        name, url = asked.queue_name, asked.input.QueueUrl
        if len(url) <= _LONG_URL:
            if len(self._names) >= _MOST_NAMES:
                self._names.clear()
            self._names[url] = name
        return name


def allow(asked: Asked, role: Role | None, queue: str) -> None:
    if role is not None:
        access.allow(asked.caller, role, queue)
    elif not asked.caller.roles & _ANY or not access.sees(asked.caller, queue):
        raise access_denied(f"this key is not for queue {queue!r}")
