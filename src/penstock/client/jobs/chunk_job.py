"""A job whose function gets many jobs in one call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Generic, Protocol, TypeVar, overload

from penstock.client.jobs.chunk_arguments import ChunkArguments
from penstock.client.jobs.item import Item
from penstock.client.jobs.job import Job

A = TypeVar("A")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class ChunkJob(Job[[A], R_co], Generic[A, R_co]):
    """A function decorated with `@app.job(batch=…)`: each enqueued value is a job of its own."""

    def __call__(self, items: Sequence[A]) -> R_co:  # type: ignore[override]
        return self._function(items)  # type: ignore[arg-type]

    def bind(self, body: str) -> Callable[[], Any]:
        value = self._chunk_arguments.value(body)
        return lambda: value

    def bind_items(self, items: Sequence[Item[Any]]) -> Callable[[], R_co | Awaitable[R_co]]:
        given = list(items) if self._chunk_arguments.takes_items else [i.value for i in items]
        function: Callable[..., R_co] = self._function
        return lambda: function(given)

    @property
    def _chunk_arguments(self) -> ChunkArguments:
        assert isinstance(self._spec.arguments, ChunkArguments)
        return self._spec.arguments


class ChunkDecorator(Protocol):
    @overload
    def __call__(self, function: Callable[[list[Item[A]]], R], /) -> ChunkJob[A, R]: ...
    @overload
    def __call__(self, function: Callable[[list[A]], R], /) -> ChunkJob[A, R]: ...


def job_class(batch: object) -> type[Job[..., Any]]:
    return Job if batch is None else ChunkJob
