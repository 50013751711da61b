"""Find the queue of a URL and check that the caller may use it."""

from __future__ import annotations

from functools import lru_cache

from penstock.domain.access import api_key as access
from penstock.domain.access.api_key import ANYONE, Role
from penstock.domain.errors import QueueNotFound
from penstock.domain.queue.queue import Queue
from penstock.edge.sqs.errors import access_denied, missing_parameter, queue_does_not_exist
from penstock.edge.sqs.rules import names
from penstock.edge.sqs.wire.operations import SqsCall
from penstock.services.directory import Directory

_ANY = frozenset(Role)
_LONG_URL = 300  # longer ones are not cached


class QueueLookup:
    def __init__(self, directory: Directory, *, account: str) -> None:
        self._directory = directory
        self._account = account
        self._remembered = lru_cache(maxsize=4096)(self._read)

    def known(self, call: SqsCall) -> Queue | None:
        """The queue if the directory has it cached; raises if the caller lacks the role."""
        name = self._name(call)
        if call.caller is not ANYONE:
            allow(call, name)
        return self._directory.cached(name)

    async def queue(self, call: SqsCall) -> Queue:
        """Raises QueueDoesNotExist or AccessDenied."""
        return self.known(call) or await self._load(self._name(call))

    async def named(self, call: SqsCall, name: str) -> Queue:
        allow(call, name)
        return await self._load(name)

    async def _load(self, name: str) -> Queue:
        if not names.is_possible(name):
            raise queue_does_not_exist()
        try:
            return await self._directory.load(name)
        except QueueNotFound:
            raise queue_does_not_exist() from None

    async def name_of(self, queue_no: int) -> str | None:
        """None if the queue was removed."""
        try:
            return self.known_name(queue_no) or await self._directory.name_of(queue_no)
        except QueueNotFound:
            return None

    def known_name(self, queue_no: int) -> str | None:
        return self._directory.known_name(queue_no)

    def _name(self, call: SqsCall) -> str:
        """The name of the queue in the request; raises MissingParameter or QueueDoesNotExist."""
        url: str | None = call.input.QueueUrl
        if not url:
            raise missing_parameter("QueueUrl")
        return self._remembered(url) if len(url) <= _LONG_URL else self._read(url)

    def _read(self, url: str) -> str:
        found = names.of_url(url)
        if found.account not in (None, self._account):
            raise queue_does_not_exist()
        return found.name


def allow(call: SqsCall, queue: str) -> None:
    """Raises Forbidden or AccessDenied unless the caller has the role that the operation needs."""
    if call.role is not None:
        access.allow(call.caller, call.role, queue)
    elif not call.caller.roles & _ANY or not access.sees(call.caller, queue):
        raise access_denied(f"this key is not for queue {queue!r}")
