"""Queues by the URLs that clients send, and whether the caller may do what it asks for."""

from __future__ import annotations

from functools import lru_cache

from penstock.domain.access import api_key as access
from penstock.domain.access.api_key import ANYONE, Role
from penstock.domain.errors import QueueNotFound
from penstock.domain.queue.queue import Queue
from penstock.edge.sqs.errors import access_denied, missing_parameter, queue_does_not_exist
from penstock.edge.sqs.rules import names
from penstock.edge.sqs.wire.call import Asked
from penstock.services.directory import Directory

_ANY = frozenset(Role)
_LONG_URL = 300  # longer ones are not worth remembering


class Finder:
    def __init__(self, directory: Directory, *, account: str) -> None:
        self._directory = directory
        self._account = account
        self._remembered = lru_cache(maxsize=4096)(self._read)

    def known(self, asked: Asked) -> Queue | None:
        """The queue if it was seen a moment ago; a caller without the role is refused."""
        name = self._name(asked)
        if asked.caller is not ANYONE:
            allow(asked, name)
        return self._directory.cached(name)

    async def queue(self, asked: Asked) -> Queue:
        """Raises QueueDoesNotExist or AccessDenied."""
        return self.known(asked) or await self._load(self._name(asked))

    async def named(self, asked: Asked, name: str) -> Queue:
        allow(asked, name)
        return await self._load(name)

    async def _load(self, name: str) -> Queue:
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

    def _name(self, asked: Asked) -> str:
        """Of the queue it is about; raises MissingParameter or QueueDoesNotExist."""
        url: str | None = asked.input.QueueUrl
        if not url:
            raise missing_parameter("QueueUrl")
        return self._remembered(url) if len(url) <= _LONG_URL else self._read(url)

    def _read(self, url: str) -> str:
        found = names.of_url(url)
        if found.account not in (None, self._account):
            raise queue_does_not_exist()
        return found.name


def allow(asked: Asked, queue: str) -> None:
    """Raises Forbidden or AccessDenied: the role is that of the operation."""
    if asked.role is not None:
        access.allow(asked.caller, asked.role, queue)
    elif not asked.caller.roles & _ANY or not access.sees(asked.caller, queue):
        raise access_denied(f"this key is not for queue {queue!r}")
