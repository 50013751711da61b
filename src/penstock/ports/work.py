"""What a worker needs: a source of work, and the handlers that do it.

The same worker runs against a store in its own process and against a remote server.
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
    crashes: int = 0  # workers that died while they held it
    max_attempts: int | None = None  # its own; None: the queue's
    timeout_ms: int | None = None
    kind: str | None = None
    entity_id: str | None = None
    tags: tuple[str, ...] = ()
    group: str | None = None
    priority: int = 0
    attributes: dict[str, str] | None = None
    trace: str | None = None
    route: str | None = None  # the circuit that is asked before it is run


class WorkAct(msgspec.Struct, frozen=True, kw_only=True):
    """What the holder of a receipt does with its message."""

    receipt: str
    verb: Verb
    delay_ms: int | None = None  # fail: own back-off; release, snooze: delay; extend: new lease
    text: str | None = None  # fail: the error; bury, cancel: the reason; crash: the details
    progress: str | None = None  # extend: progress as JSON text
    is_start: bool = False  # extend: handling begins only now; the time limit counts from here
    queue: str | None = None  # complete: of the message; it may be sent with a claim from there


class Unanswered(Exception):
    """The store did not answer for this act: send it again."""


Answer = PenstockError | Unanswered | None  # rejected; to be sent again; done


class Handler(Protocol):
    """Handles jobs of one kind."""

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
        """None: the queue's."""
        ...

    def bind(self, body: str) -> Callable[[], object]:
        """The call with its arguments; raises InvalidRequest for a body that does not fit.

        It returns, or its coroutine returns, an outcome; any other result means done.
        """
        ...


class JobControls(Protocol):
    """What a running job may ask of its worker.  Called on the handler's thread or loop."""

    @property
    def deadline(self) -> int | None:
        """When it will be stopped."""
        ...

    @property
    def is_stopping(self) -> bool:
        """The worker is stopping; a long job may stop at a good place and continue later."""
        ...

    def extend(self, *, lease_ms: int | None = None, progress: str | None = None) -> None:
        """Extend the lease and report progress (JSON text); raises LeaseLost."""
        ...


class Running(Protocol):
    """One call of a handler, as its worker sees it."""

    @property
    def is_completed(self) -> bool:
        """The handler has completed its job itself, in a transaction of its own."""
        ...

    def set_result(self, result: object) -> None:
        """Receive the handler's result; exceptions pass through."""
        ...


class Handlers(Protocol):
    def find(self, kind: str) -> Handler | None: ...
    def of(self, work: Work) -> Handler | None:
        """By its queue, if that has handlers of its own; otherwise by its kind."""
        ...

    def around(self, work: Work, controls: JobControls) -> AbstractContextManager[Running]:
        """Entered around each call of a sync handler, on the thread that it runs on."""
        ...

    def around_async(
        self, work: Work, controls: JobControls
    ) -> AbstractAsyncContextManager[Running]:
        """Entered around each call of an async handler, in the task that it runs in."""
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
        """Does not wait.  Returns work of the queues in their order, and an answer for each act.

        Raises only if no act was answered and nothing was claimed.
        """
        ...

    def act(self, acts: Sequence[WorkAct]) -> list[Answer]:
        """Returns an answer for each; raises only if no act was answered."""
        ...

    def listen(self, queues: Sequence[str], callback: Callable[[], None]) -> Callable[[], None]:
        """Call back, from any thread, when there may be work; returns a function that stops it.

        A source may start with the next claim that returns less than requested.
        """
        ...

    def permits(self, jobs: Mapping[str, str]) -> Mapping[str, Permitted] | None:
        """Whether jobs of these routes may run now; None: permits and reports are not needed.

        `jobs`: by route, the id of a claimed job that has it.
        A probe is for one job, and reserved by this call.
        """
        ...

    def report(self, reports: Sequence[Reported]) -> None:
        """Report the outcomes of permitted jobs."""
        ...
