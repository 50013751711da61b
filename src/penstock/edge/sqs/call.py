"""A call of an operation in either protocol: the queue that it names, and its answer."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from typing import Any

import msgspec

from penstock.domain.access import api_key as access
from penstock.domain.access.api_key import ANYONE, Caller, Role
from penstock.domain.delivery.addresses import Network
from penstock.domain.errors import QueueExists, QueueNotFound
from penstock.domain.queue.queue import Queue
from penstock.edge.aws.api import base_of
from penstock.edge.aws.errors import access_denied
from penstock.edge.server.request import Request
from penstock.edge.sqs.errors import missing_parameter, queue_does_not_exist
from penstock.edge.sqs.rules import attributes, names
from penstock.edge.sqs.rules.stored_attributes import new_settings
from penstock.services.directory import Directory
from penstock.services.queues import QueueService
from penstock.settings.values import SqsSettings

_ANY = frozenset(Role)
_LONG_URL = 300  # longer ones are not cached


class SqsCall(msgspec.Struct, frozen=True, gc=False):
    input: Any
    request: Request
    settings: SqsSettings
    scheme: str  # of this server, without a proxy
    proxies: list[Network] = []  # proxies trusted to set the host and the scheme
    caller: Caller = ANYONE
    role: Role | None = None  # that the operation requires; None: any

    @property
    def base(self) -> str:
        """The start of queue URLs: `sqs.public_url`, or the address that the client used."""
        return base_of(
            self.request,
            public_url=self.settings.public_url,
            scheme=self.scheme,
            proxies=self.proxies,
            caller=self.caller,
        )

    def url(self, queue: str) -> str:
        return names.url(self.base, self.settings.account, queue)

    def arn(self, queue: str) -> str:
        return str(names.QueueArn(self.settings.region, self.settings.account, queue))


class QueueLookup:
    def __init__(self, directory: Directory, queues: QueueService, settings: SqsSettings) -> None:
        self._directory = directory
        self._queues = queues
        self._account = settings.account
        self._creates = settings.auto_create
        self._remembered = lru_cache(maxsize=4096)(self._read)

    def cached_queue(self, call: SqsCall) -> Queue | None:
        """The queue if the directory has it cached; raises if the caller lacks the role."""
        name = self._name(call)
        if call.caller is not ANYONE:
            allow(call, name)
        return self._directory.cached(name)

    async def queue(self, call: SqsCall) -> Queue:
        """Raises QueueDoesNotExist or AccessDenied."""
        return self.cached_queue(call) or await self._load(self._name(call))

    async def queue_by_name(self, call: SqsCall, name: str) -> Queue:
        allow(call, name)
        return await self._load(name)

    async def _load(self, name: str) -> Queue:
        if not names.is_possible(name):
            raise queue_does_not_exist()
        try:
            return await self._directory.load(name)
        except QueueNotFound:
            if not self._creates:
                raise queue_does_not_exist() from None
        await self._create(name)
        return await self._directory.load(name)

    async def _create(self, name: str) -> None:
        """Create it as CreateQueue would without attributes, except the type that the name says."""
        is_fifo = names.is_fifo(name)
        names.check_new(name, fifo=is_fifo)
        given = {"FifoQueue": "true"} if is_fifo else {}
        settings = new_settings(attributes.read_new(given, least_retention=1))
        with suppress(QueueExists):  # another caller was faster
            await self._queues.put(name, settings, only_new=True)

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
