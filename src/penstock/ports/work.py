"""What a worker needs: somewhere to get work from, and the handlers that do it.

The same worker runs against a store in its own process and against a server elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol

import msgspec

from penstock.domain.circuit.circuit import Permitted, Reported
from penstock.domain.errors import PenstockError
from penstock.domain.message.lease import Verb
from penstock.domain.message.retry import Backoff


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """A claimed message, as the worker that holds it sees it."""

    id: str
    queue: str
    receipt: str
    body: str  # JSON text
    sent_at: int
    leased_until: int
    attempts: int = 1  # this one included
    failures: int = 0
    crashes: int = 0  # how often it took its worker with it
    max_attempts: int | None = None  # its own; None: the queue's
    timeout_ms: int | None = None
    kind: str | None = None
    entity_id: str | None = None
    tags: tuple[str, ...] = ()
    group: str | None = None
    priority: int = 0
    attributes: dict[str, str] | None = None
    trace: str | None = None
    route: str | None = None  # whose circuit is asked before it is run


class WorkAct(msgspec.Struct, frozen=True, kw_only=True):
    """What the holder of a receipt wants done with the message behind it."""

    receipt: str
    verb: Verb
    delay_ms: int | None = None  # fail: own back-off; release, snooze: how long; extend: new lease
    text: str | None = None  # fail: the error; bury, cancel: the reason; crash: what is known
    progress: str | None = None  # extend: how far it has come, as JSON text
    is_start: bool = False  # extend: handling begins only now; the time limit counts from here
    queue: str | None = None  # complete: of the message; it may be sent with a claim from there


class Unanswered(Exception):
    """The store did not answer for this act: send it again."""


Answer = PenstockError | Unanswered | None  # rejected; to be sent again; done


class Handler(Protocol):
    """What does the work of one kind."""

    @property
    def kind(self) -> str: ...
    @property
    def is_async(self) -> bool: ...
    @property
    def timeout_ms(self) -> int | None: ...
    @property
    def retries_timeouts(self) -> bool: ...
    @property
    def backoff(self) -> Backoff | None:
        """None: as the queue says."""
        ...

    def bind(self, body: str) -> Callable[[], object]:
        """The call with its arguments; raises InvalidRequest for a body that does not fit.

        What it returns, or what its coroutine returns, is an outcome or anything else: done.
        """
        ...


class Controls(Protocol):
    """What a running job may ask of whoever runs it.  Called on the handler's thread or loop."""

    @property
    def deadline(self) -> int | None:
        """When it will be stopped."""
        ...

    @property
    def is_stopping(self) -> bool:
        """The worker wants to end; a long job may stop at a good place and come back later."""
        ...

    def extend(self, *, lease_ms: int | None = None, progress: str | None = None) -> None:
        """Hold it for longer, and tell how far it has come (JSON text); raises LeaseLost."""
        ...


class Running(Protocol):
    """One call of a handler, for whoever runs it."""

    @property
    def is_completed(self) -> bool:
        """The handler has completed its job itself, in a transaction of its own."""
        ...

    def told(self, result: object) -> None:
        """What the handler has returned; what it raises passes through."""
        ...


class Handlers(Protocol):
    def find(self, kind: str) -> Handler | None: ...
    def of(self, work: Work) -> Handler | None:
        """By its queue, where that has handlers of its own; else by its kind."""
        ...

    def around(self, work: Work, controls: Controls) -> AbstractContextManager[Running]:
        """To be held around each call of a sync handler, on the thread that it runs on."""
        ...

    def around_async(self, work: Work, controls: Controls) -> AbstractAsyncContextManager[Running]:
        """To be held around each call of an async handler, in the task that it runs in."""
        ...


class WorkSource(Protocol):
    """Safe to share between threads."""

    def claim(
        self,
        queues: Sequence[str],
        *,
        limit: int,
        lease_ms: int,
        worker_id: str,
        finishing: Sequence[WorkAct] = (),
    ) -> tuple[list[Work], list[Answer]]:
        """Does not wait.  Work of the queues in their order, and an answer for each act.

        Raises only if no act was answered and nothing was claimed.
        """
        ...

    def act(self, acts: Sequence[WorkAct]) -> list[Answer]:
        """An answer for each; raises only if there is none."""
        ...

    def listen(self, queues: Sequence[str], callback: Callable[[], None]) -> Callable[[], None]:
        """Call back, from any thread, when there may be work; returns what ends it.

        A source may begin with the next claim that gives less than it was asked for.
        """
        ...

    def permits(self, jobs: Mapping[str, str]) -> Mapping[str, Permitted] | None:
        """Whether jobs of these routes may be run now; None: there is no need to ask or to tell.

        `jobs`: by route, the id of a claimed job that has it.
        A probe is for one job, and taken with this.
        """
        ...

    def report(self, reports: Sequence[Reported]) -> None:
        """What became of jobs that were let through."""
        ...
