"""A unit of work: a value that describes what happens in one transaction.

A service returns the work; the caller decides how it runs: awaited on an event loop, blocking in a
thread, or inside the caller's own transaction.  Nothing runs before that.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any, Generic, TypeVar

from penstock.domain.errors import PenstockError
from penstock.ports.store import Session, Store
from penstock.ports.ticket import Ticket
from penstock.ports.waiting import PendingEnd

T = TypeVar("T")
U = TypeVar("U")


class Work(Generic[T]):
    __slots__ = ("_do", "_finish", "_is_used", "_is_write", "_store")

    def __init__(
        self,
        store: Store,
        do: Callable[[Session], Any],
        *,
        is_write: bool,
        finish: Callable[[Any], T] | None = None,
    ) -> None:
        self._store = store
        self._do = do
        self._is_write = is_write
        self._finish = finish
        self._is_used = False

    def __del__(self) -> None:
        if not self._is_used:  # as Python warns about a coroutine that was never awaited
            warnings.warn(f"{self._do!r} was never run", RuntimeWarning, stacklevel=1)

    def map(self, finish: Callable[[T], U]) -> Work[U]:
        """The same work, with its answer computed outside of the transaction."""
        self._is_used = True
        before = self._finish
        after: Callable[[Any], U] = (
            finish if before is None else lambda result: finish(before(result))
        )
        return Work(self._store, self._do, is_write=self._is_write, finish=after)

    def start(self) -> Ticket[Any]:
        self._is_used = True
        store = self._store
        return store.write(self._do) if self._is_write else store.read(self._do)

    def answer(self, result: Any) -> T:
        if self._finish is None:
            answer: T = result
            return answer
        return self._finish(result)

    # --- ways to run it ---

    def result(self, timeout: float | None = None) -> T:
        return self.answer(self.start().result(timeout))

    def __await__(self) -> Generator[Any, None, T]:
        return self.answer((yield from self.start().__await__()))

    def then(self, callback: Callable[[Any], None]) -> None:
        """On an event loop: call back with the answer, or with the error in its place."""

        def on_result(result: Any) -> None:
            if not isinstance(result, BaseException):
                try:
                    result = self.answer(result)
                except Exception as error:
                    result = error
            callback(result)

        self.start().then(on_result)

    def result_in(self, tx: object) -> T:
        """In the caller's own transaction: it takes effect if and only if the caller commits."""
        self._is_used = True
        return self.answer(self._store.write_in(tx, self._do))

    def within(self, session: Session) -> T:
        """As a part of other work, in its transaction."""
        self._is_used = True
        return self.answer(self._do(session))

    async def result_in_async(self, tx: object) -> T:
        self._is_used = True
        return self.answer(await self._store.write_in_async(tx, self._do))

    def __iter__(self) -> Generator[Work[Any], Any, T]:
        """One of several steps: `task = yield from moves.get(move_id)`."""
        answer: T = yield self
        return answer


def read(store: Store, do: Callable[[Session], T]) -> Work[T]:
    return Work(store, do, is_write=False)


def write(store: Store, do: Callable[[Session], T]) -> Work[T]:
    return Work(store, do, is_write=True)


class ThreadedStep(Generic[T]):
    """A slow step that needs no store: an event loop runs it in a thread."""

    __slots__ = ("_compute",)

    def __init__(self, compute: Callable[[], T]) -> None:
        self._compute = compute

    def result(self, timeout: float | None = None) -> T:
        return self._compute()

    def __await__(self) -> Generator[Any, None, T]:
        return asyncio.to_thread(self._compute).__await__()

    def __iter__(self) -> Generator[ThreadedStep[Any], Any, T]:
        answer: T = yield self
        return answer


class ParallelWork(Generic[T]):
    """Independent work that is started at once, so that it shares commits.

    The answer is a list: the answer of each, or the error that it raised.
    """

    __slots__ = ("_works",)

    def __init__(self, works: Sequence[Work[T]]) -> None:
        self._works = works

    def result(self, timeout: float | None = None) -> list[T | PenstockError]:
        answers: list[T | PenstockError] = []
        for work, ticket in [(work, work.start()) for work in self._works]:
            try:
                answers.append(work.answer(ticket.result(timeout)))
            except PenstockError as error:
                answers.append(error)
        return answers

    def __await__(self) -> Generator[Any, None, list[T | PenstockError]]:
        answers: list[T | PenstockError] = []
        for work, ticket in [(work, work.start()) for work in self._works]:
            try:
                answers.append(work.answer((yield from ticket.__await__())))
            except PenstockError as error:
                answers.append(error)
        return answers

    def __iter__(self) -> Generator[ParallelWork[Any], Any, list[T | PenstockError]]:
        answer: list[T | PenstockError] = yield self
        return answer


Step = Work[Any] | ParallelWork[Any] | ThreadedStep[Any] | Ticket[Any] | PendingEnd

# Several transactions in sequence: yields work, and is sent its answer or its error.
Steps = Generator[Step, Any, T]


def _result(step: Step) -> Any:
    return step.result()


def run_steps(steps: Steps[T], run: Callable[[Step], Any] = _result) -> T:
    proceed: Callable[[Any], Step] = steps.send
    value: Any = None
    while True:
        try:
            step = proceed(value)
        except StopIteration as end:
            answer: T = end.value
            return answer
        try:
            proceed, value = steps.send, run(step)
        except Exception as error:
            proceed, value = steps.throw, error


async def _await(step: Step) -> Any:
    return await step


async def await_steps(steps: Steps[T], run: Callable[[Step], Awaitable[Any]] = _await) -> T:
    proceed: Callable[[Any], Step] = steps.send
    value: Any = None
    while True:
        try:
            step = proceed(value)
        except StopIteration as end:
            answer: T = end.value
            return answer
        try:
            proceed, value = steps.send, await run(step)
        except Exception as error:
            proceed, value = steps.throw, error
