"""The durable steps of a message, as operators and tests see them."""

from __future__ import annotations

from penstock.api.jobs import steps
from penstock.api.jobs.steps import MessageSteps
from penstock.api.operation import PageQuery
from penstock.client.channel import Ask, Flow

_PAGE = 1_000


def steps_of(message_id: str) -> Flow[MessageSteps]:
    """All steps of a message, and the signals that it waits for; raises MessageNotFound."""
    found: list[steps.Step] = []
    cursor: str | None = None
    while True:
        query = PageQuery(limit=_PAGE, cursor=cursor)
        page: MessageSteps = yield Ask(steps.OF_MESSAGE, {"id": message_id}, query=query)
        found += page.steps
        if page.next is None:
            return MessageSteps(steps=found, next=None, waits=page.waits)
        cursor = page.next
