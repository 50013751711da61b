"""A delivery: an HTTP request that waits in a queue until it is pushed to its route's URL.

It is an ordinary message.  All deliveries of a queue have the same group, so they are pushed
strictly in order, one at a time: the first one blocks the others, even while it waits for a retry.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

import msgspec
from msgspec import UNSET, UnsetType

from penstock.domain.errors import InvalidRequest
from penstock.domain.queue.queue import Ordering, Queue, QueueSettings

LABEL = "penstock.push"  # of queues that hold deliveries
OF_REQUESTS, OF_ENDPOINT = "true", "endpoint"  # its values: requests by URI, events of one endpoint
GROUP = "push"
KIND = "delivery"
METHODS = ("DELETE", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")  # those that can be queued
MAX_REQUEST_ID_CHARS = 256  # as for labels of messages

# Hop-by-hop headers.  If they were forwarded, the endpoint could see another end of the request
# than we do (request smuggling).
OF_THE_CONNECTION = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)

Header = tuple[str, str]

_REQUEST_ID = ("x-rp-unique_id", "x-rp-unique-id")
_EXPIRE_AFTER = ("x-queue-expire-after", "x-expire-after")  # the first one with a value counts
_RETRY = "x-queue-retry-"
_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")
_MAX_INT = 2**31 - 1
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,8192}")
_NEVER = -1


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """As stored in the message's body: JSON, with the payload in base64."""

    method: str
    uri: str  # path and query, as received
    headers: tuple[Header, ...] = ()
    payload: bytes | None = None
    queued_at: int
    # How the circuit distinguishes requests.  UNSET: by headers or the URI, as in gateleen; None:
    # every message is a separate request; a text: the sender's id.
    unique_id: str | UnsetType | None = UNSET

    def header(self, name: str) -> str | None:
        """The value of the first header with this name, given in lower case."""
        return next((text for given, text in self.headers if given.lower() == name), None)

    @property
    def request_id(self) -> str:
        """The sender's own id, or else the URI."""
        return self.unique_id or self._id_in_headers or short_id(self.uri)

    def counted_as(self, message_id: str) -> str:
        """The id under which the circuit counts its attempts."""
        if self.unique_id is None:
            return self._id_in_headers or message_id
        return self.request_id

    @property
    def _id_in_headers(self) -> str | None:
        given = next(filter(None, (self.header(name) for name in _REQUEST_ID)), None)
        return given and short_id(given)

    @property
    def expire_after_s(self) -> int | None:
        """Seconds until it expires; None: never."""
        for name in _EXPIRE_AFTER:
            seconds = _integer(self.header(name))
            if seconds is not None and seconds >= _NEVER:
                return None if seconds == _NEVER else seconds
        return None

    @property
    def retries(self) -> dict[str, str]:
        """By status ("404") or class ("4xx"): how many retries the sender wants."""
        pairs = ((name.lower(), text) for name, text in self.headers)
        return {name[len(_RETRY) :]: text for name, text in pairs if name.startswith(_RETRY)}

    def is_expired(self, *, now: int) -> bool:
        seconds = self.expire_after_s
        return seconds is not None and now > self.queued_at + seconds * 1_000


_read = msgspec.json.Decoder(Delivery)
_write = msgspec.json.Encoder().encode


def to_body(delivery: Delivery) -> str:
    return _write(delivery).decode()


def from_body(body: str) -> Delivery:
    """Raises InvalidRequest, as any sender may have put other messages into the queue."""
    try:
        return _read.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidRequest(f"this message is not a delivery: {error}") from None


def queue_settings() -> QueueSettings:
    """The settings of a queue for deliveries, in which attempts are not limited."""
    return QueueSettings(
        ordering=Ordering.GROUP, max_attempts=None, max_crashes=None, labels={LABEL: OF_REQUESTS}
    )


def is_for_deliveries(queue: Queue) -> bool:
    return queue.is_ordered and queue.settings.labels.get(LABEL) in (OF_REQUESTS, OF_ENDPOINT)


def takes_requests(queue: Queue) -> bool:
    """Whether senders may queue requests in it; the bus fills the queues of endpoints."""
    return queue.is_ordered and queue.settings.labels.get(LABEL) == OF_REQUESTS


def is_of_endpoint(queue: Queue) -> bool:
    return queue.is_ordered and queue.settings.labels.get(LABEL) == OF_ENDPOINT


def check_headers(headers: Mapping[str, str], *, most: int) -> tuple[Header, ...]:
    """Return them as pairs; raises InvalidRequest."""
    if len(headers) > most:
        raise InvalidRequest(f"a delivery has at most {most} headers, not {len(headers)}")
    for name, text in headers.items():
        if not _HEADER_NAME.fullmatch(name) or not _HEADER_VALUE.fullmatch(text):
            raise InvalidRequest(f"header {name[:40]!r} has a name or value that HTTP cannot carry")
        if name.lower() in OF_THE_CONNECTION:
            raise InvalidRequest(f"header {name} belongs to one connection; leave it out")
    return tuple(headers.items())


def short_id(text: str) -> str:
    """Shorten a long id to its beginning and a digest, so that ids stay distinct."""
    if len(text) <= MAX_REQUEST_ID_CHARS:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[: MAX_REQUEST_ID_CHARS - len(digest) - 1]}#{digest}"


def content_key(uri: str, payload: bytes | None) -> str:
    """Equal for equal requests to the same URI."""
    return hashlib.sha256(uri.encode() + b"\n" + (payload or b"")).hexdigest()


def _integer(text: str | None) -> int | None:
    if text is None or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -_MAX_INT - 1 <= number <= _MAX_INT else None
