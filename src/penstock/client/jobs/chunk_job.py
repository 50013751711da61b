"""A job whose function gets many jobs in one call."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Generic, Protocol, TypeVar, overload

from penstock.client.jobs.item import Item
from penstock.client.jobs.job import Job
from penstock.client.values.chunk_arguments import ChunkArguments

A = TypeVar("A")
R = TypeVar("R")


class ChunkJob(Job[[A], R], Generic[A, R]):
    """A function decorated with `@app.job(batch=…)`: each enqueued value is a job of its own.

    A is the type of its argument, R that of its result: an element of the list that is returned.
    """

    def __call__(self, items: Sequence[A]) -> Any:  # type: ignore[override]
        return self._function(items)  # type: ignore[arg-type]

    def call_with(self, body: str) -> Callable[[], Any]:
        value = self._chunk_arguments.value(body)
        return lambda: value

    def bind_items(self, items: Sequence[Item[Any]]) -> Callable[[], Any]:
        given = list(items) if self._chunk_arguments.takes_items else [i.value for i in items]
        function: Callable[..., Any] = self._function
        return lambda: function(given)

    @property
    def _chunk_arguments(self) -> ChunkArguments:
        assert isinstance(self._spec.arguments, ChunkArguments)
        return self._spec.arguments


class ChunkDecorator(Protocol):
    @overload
    def __call__(
        self, function: Callable[[list[Item[A]]], Coroutine[Any, Any, list[R]]], /
    ) -> ChunkJob[A, R]: ...
    @overload
    def __call__(self, function: Callable[[list[Item[A]]], list[R]], /) -> ChunkJob[A, R]: ...
    @overload
    def __call__(self, function: Callable[[list[Item[A]]], Any], /) -> ChunkJob[A, Any]: ...
    @overload
    def __call__(
        self, function: Callable[[list[A]], Coroutine[Any, Any, list[R]]], /
    ) -> ChunkJob[A, R]: ...
    @overload
    def __call__(self, function: Callable[[list[A]], list[R]], /) -> ChunkJob[A, R]: ...
    @overload
    def __call__(self, function: Callable[[list[A]], Any], /) -> ChunkJob[A, Any]: ...


def job_class(batch: object) -> type[Job[..., Any]]:
    return Job if batch is None else ChunkJob
