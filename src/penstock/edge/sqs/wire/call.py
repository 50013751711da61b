"""A request as the operations see it, whatever protocol it came in; and what they promise."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from penstock.domain.access.api_key import ANYONE, Caller, Role
from penstock.domain.delivery.addresses import Network, is_within
from penstock.edge.server.request import Request
from penstock.edge.sqs.rules import names
from penstock.edge.sqs.wire.model import Output
from penstock.ports.ticket import Ticket
from penstock.settings.values import SqsSettings

A = TypeVar("A")
R = TypeVar("R")

_SCHEMES = ("http", "https")


class Asked(msgspec.Struct, frozen=True, gc=False):
    input: Any
    request: Request
    settings: SqsSettings
    scheme: str  # with which this server is reached without a proxy
    proxies: Sequence[Network] = ()  # whose word counts about host and scheme
    caller: Caller = ANYONE
    role: Role | None = None  # that the operation takes; None: any

    @property
    def base(self) -> str:
        """What queue URLs begin with: the address that the client used, unless one is set."""
        if self.settings.public_url is not None:
            return self.settings.public_url
        headers = self.request.headers
        host = _first(headers, b"host") or "localhost"
        if not self.proxies or not is_within(self.request.client, self.proxies):
            return f"{self.scheme}://{host}"
        if self.caller is ANYONE:  # else the host is what was signed: a proxy must not change it
            host = _forwarded_host(headers) or host
        scheme = _first(headers, b"x-forwarded-proto").lower()
        return f"{scheme if scheme in _SCHEMES else self.scheme}://{host}"

    def url(self, queue: str) -> str:
        return names.url(self.base, self.settings.account, queue)

    def arn(self, queue: str) -> str:
        return str(names.QueueArn(self.settings.region, self.settings.account, queue))


class Promise(msgspec.Struct, Generic[A, R], frozen=True):
    """The hot way: what the store will answer, and what to make of it; no task in between."""

    ticket: Ticket[A]
    finish: Callable[[A], R]  # gives an output, or None, or what to await for either
    notice: Callable[[Any], Any] | None = None  # of an error in place of the answer


# An operation gives either of them; what it raises, now or later, is told in SQS's words.
Promised = Promise[Any, Any] | Awaitable[Output | None]


def _forwarded_host(headers: dict[bytes, bytes]) -> str:
    """With its port, which many proxies tell apart."""
    host = _first(headers, b"x-forwarded-host")
    port = _first(headers, b"x-forwarded-port")
    has_port = ":" in host.rpartition("]")[2]
    return f"{host}:{port}" if host and port.isdecimal() and not has_port else host


def _first(headers: dict[bytes, bytes], name: bytes) -> str:
    """Each proxy on the way adds one; the first is what the client used."""
    return headers.get(name, b"").partition(b",")[0].strip().decode("latin-1")
