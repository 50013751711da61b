"""Paging of queue lists: MaxResults and NextToken."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Awaitable, Callable

from penstock.domain.access.api_key import Caller, sees
from penstock.edge.aws.errors import invalid_parameter
from penstock.edge.sqs.rules import content, names
from penstock.services.queues import QueueView

MAX_PER_PAGE = 1000  # per page, and without paging

Look = Callable[
    [str, int], Awaitable[list[QueueView]]
]  # takes the last name of the previous page, and a limit


async def page(
    look: Look, caller: Caller, *, size: int | None, token: str | None
) -> tuple[list[str], str | None]:
    """The names that the caller may see, and the token of the next page, if any.

    Raises InvalidParameterValue.
    """
    after = check(size, token)
    room, shown = size or MAX_PER_PAGE, list[str]()
    at_once = room + 1  # one more shows whether there is a next page
    while True:
        found = [view.queue.name for view in await look(after, at_once)]
        shown += [name for name in found if sees(caller, name)]
        if len(shown) > room:
            # Without MaxResults, only the first page is returned, and no token.
            return shown[:room], None if size is None else _token(shown[room - 1])
        if len(found) < at_once:
            return shown, None
        after, at_once = (
            found[-1],
            MAX_PER_PAGE,
        )  # the caller may not see all of them: read more at a time


def check(size: int | None, token: str | None) -> str:
    """Return the last name of the previous page; raises InvalidParameterValue."""
    if size is not None:
        content.check_max_results(size, most=MAX_PER_PAGE)
    return _name(token) if token else ""


def _token(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()


def _name(token: str) -> str:
    try:
        name = base64.urlsafe_b64decode(token).decode()
    except (binascii.Error, ValueError):
        name = ""
    if not names.is_possible(name):
        raise invalid_parameter("Invalid or expired next token.")
    return name
