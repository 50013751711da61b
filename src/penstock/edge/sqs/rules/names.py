"""Names, URLs and ARNs of queues."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from penstock.edge.aws.errors import invalid_parameter

FIFO = ".fifo"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,80}")
_FIFO_NAME = re.compile(r"[A-Za-z0-9_-]{1,75}\.fifo")
_POSSIBLE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")  # other APIs also allow full stops
_ARN = re.compile(r"arn:aws[a-z-]*:sqs:([a-z0-9-]*):([0-9]{12}):([A-Za-z0-9_.-]{1,80})")


class QueueAddress(NamedTuple):
    account: str | None  # None: the caller's own
    name: str


class QueueArn(NamedTuple):
    region: str
    account: str
    name: str

    def __str__(self) -> str:
        return f"arn:aws:sqs:{self.region}:{self.account}:{self.name}"


def check_new(name: str, *, fifo: bool) -> None:
    """Check a name for CreateQueue; raises InvalidParameterValue."""
    if not fifo and not _NAME.fullmatch(name):
        raise invalid_parameter(
            "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
        )
    if fifo and not _FIFO_NAME.fullmatch(name):
        raise invalid_parameter(
            "The name of a FIFO queue can only include alphanumeric characters, hyphens, or "
            "underscores, must end with .fifo suffix and be 1 to 80 in length"
        )
    if name.startswith("-"):
        raise invalid_parameter("The name of a queue cannot begin with a hyphen")


def is_possible(name: str) -> bool:
    """Whether a queue can have this name, created through any API."""
    return _POSSIBLE.fullmatch(name) is not None


def is_fifo(name: str) -> bool:
    return name.endswith(FIFO)


def of_url(url: str) -> QueueAddress:
    """The account and the name from the last two path segments; a bare name is accepted.

    An invalid URL yields a name that no queue has, so the error is QueueDoesNotExist.
    """
    _, has_scheme, rest = url.partition("://")
    path = rest.partition("/")[2] if has_scheme else url
    segments = [unquote(part) for part in path.split("?")[0].split("/") if part]
    if not segments:
        return QueueAddress(None, "")
    return QueueAddress(segments[-2] if len(segments) > 1 else None, segments[-1])


def url(base: str, account: str, name: str) -> str:
    """`base`: scheme, host and port as the client sees them, such as http://localhost:7654."""
    return f"{base}/{account}/{name}"


def of_arn(text: str) -> QueueArn | None:
    """None if it is not the ARN of a queue."""
    found = _ARN.fullmatch(text)
    return QueueArn(*found.groups()) if found else None


def is_same_queue(arn: str, other: str) -> bool:
    """Compare two ARNs, ignoring their regions: there is only one set of queues."""
    one, two = of_arn(arn), of_arn(other)
    return arn == other or (one is not None and two is not None and one[1:] == two[1:])
