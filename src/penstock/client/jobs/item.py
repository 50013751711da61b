"""One job of a chunk, as the function that handles the chunk sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from penstock.client.backend import Backend
from penstock.client.jobs.current import Current
from penstock.worker.claimed_job import ClaimedJob

if TYPE_CHECKING:
    from penstock.client.flows.handle import FlowHandle

A = TypeVar("A")


class Item(Current, Generic[A]):
    """One job of a chunk: its arguments as `value`, and the properties of `current()`."""

    def __init__(
        self,
        job: ClaimedJob,
        backend: Callable[[], Backend],
        flow_of: Callable[[str], FlowHandle],
    ) -> None:
        super().__init__(job, backend, flow_of)
        assert job.call is not None
        self.value: A = job.call()  # type: ignore[assignment]
        self.is_settled = False
        self.outcome: object = None

    def settle(self, outcome: object = None) -> None:
        """Decide what becomes of this job, whatever the function returns or raises later.

        `outcome`: what a function for this job alone would return or raise: Retry, Snooze, Cancel,
        Bury, an exception, or anything else, which means done.  The last call counts.
        """
        self.is_settled = True
        self.outcome = outcome
