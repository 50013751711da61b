"""A unit of work: what is to happen in one transaction, as a value.

A service describes the work; the caller decides how it runs: awaited on an event loop, blocking
in a thread, or inside a transaction of the caller's own.  Nothing runs before that.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

from penstock.ports.store import Session, Store
from penstock.ports.ticket import Ticket

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
        if not self._is_used:  # as Python does for a coroutine that nobody awaits
            warnings.warn(f"{self._do!r} was never run", RuntimeWarning, stacklevel=1)

    def map(self, finish: Callable[[T], U]) -> Work[U]:
        """The same work, its answer made of the result outside of the transaction."""
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
        """On a loop: call back with the answer, or with the error in its place."""

        def on_result(result: Any) -> None:
            if not isinstance(result, BaseException):
                try:
                    result = self.answer(result)
                except Exception as error:
                    result = error
            callback(result)

        self.start().then(on_result)

    def result_in(self, tx: object) -> T:
        """In the caller's own transaction: it counts exactly if the caller commits."""
        self._is_used = True
        return self.answer(self._store.write_in(tx, self._do))

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


# Several transactions, one after the other: yields work, and is sent its answer.
Steps = Generator[Work[Any], Any, T]


def run_steps(steps: Steps[T]) -> T:
    answer: Any = None
    while True:
        try:
            work = steps.send(answer)
        except StopIteration as end:
            value: T = end.value
            return value
        answer = work.result()


async def await_steps(steps: Steps[T]) -> T:
    answer: Any = None
    while True:
        try:
            work = steps.send(answer)
        except StopIteration as end:
            value: T = end.value
            return value
        answer = await work
