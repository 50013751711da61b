"""Chains and groups: flows written as one expression.

chain(fetch.bind(1), store.bind(previous)).enqueue()
group(fetch.bind(1), fetch.bind(2)).then(merge.bind(previous)).enqueue()
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, cast

import msgspec

from penstock.client.flows.node import Node
from penstock.client.jobs.job import BoundJob, Enqueuing
from penstock.domain.duration import Duration
from penstock.domain.errors import InvalidRequest

if TYPE_CHECKING:
    from penstock.client.app import Penstock
    from penstock.client.flows.builder import FlowBuilder


class Previous:
    """Stands for the result of what comes before, or the list of results of a group."""

    def __repr__(self) -> str:
        return "previous"


previous: Any = Previous()


class FlowOptions(TypedDict, total=False):
    """Keyword arguments of `enqueue`."""

    dedup_key: str | None
    dedup_window: Duration | None
    tx: object  # the caller's own transaction


class Before(msgspec.Struct, frozen=True):
    """What comes before a step."""

    nodes: tuple[Node[Any], ...] = ()
    is_group: bool = False


class Steps(ABC):
    """A part of a flow, or a whole one."""

    def then(self, *steps: Any) -> Chain:
        """This, and afterwards these steps one after the other."""
        return Chain(self, *steps)

    def enqueue(self, name: str | None = None, **options: Unpack[FlowOptions]) -> FlowBuilder:
        """Enqueue it as a flow of its own."""
        return self._builder(name, options).enqueue()

    async def enqueue_async(
        self, name: str | None = None, **options: Unpack[FlowOptions]
    ) -> FlowBuilder:
        return await self._builder(name, options).enqueue_async()

    @abstractmethod
    def place(self, builder: FlowBuilder, before: Before, prefix: str) -> Before:
        """Add its members; returns what a next step comes after."""

    @property
    @abstractmethod
    def first(self) -> BoundJob[Any]: ...

    def _builder(self, name: str | None, options: FlowOptions) -> FlowBuilder:
        app = cast("Penstock", self.first.outbox)
        builder = app.flow(name or self.first.spec.kind, **options)
        self.place(builder, Before(), "")
        return builder


class Chain(Steps):
    def __init__(self, *steps: Any) -> None:
        self._steps = [_step(step) for step in steps]
        if not self._steps:
            raise InvalidRequest("a chain has at least one step")

    def place(self, builder: FlowBuilder, before: Before, prefix: str) -> Before:
        for step in self._steps:
            before = _place(step, builder, before, prefix)
        return before

    @property
    def first(self) -> BoundJob[Any]:
        return _first(self._steps[0])


class Group(Steps):
    def __init__(self, *steps: Any) -> None:
        self._steps = [_step(step) for step in steps]
        if not self._steps:
            raise InvalidRequest("a group has at least one step")

    def place(self, builder: FlowBuilder, before: Before, prefix: str) -> Before:
        ends: list[Node[Any]] = []
        for i, step in enumerate(self._steps):
            inner = f"{prefix}{i}." if isinstance(step, Steps) else prefix
            ends += _place(step, builder, before, inner).nodes
        return Before(tuple(ends), is_group=True)

    @property
    def first(self) -> BoundJob[Any]:
        return _first(self._steps[0])


def chain(*steps: Any) -> Chain:
    """One step after the other; a step is a bound job, a group or a chain."""
    return Chain(*steps)


def group(*steps: Any) -> Group:
    """Steps side by side."""
    return Group(*steps)


def _step(step: Any) -> BoundJob[Any] | Steps:
    if isinstance(step, Enqueuing):
        return step.bind()
    if isinstance(step, BoundJob | Steps):
        return step
    raise InvalidRequest(f"a step is job.bind(…), a chain or a group, not {step!r}")


def _first(step: BoundJob[Any] | Steps) -> BoundJob[Any]:
    return step if isinstance(step, BoundJob) else step.first


def _place(
    step: BoundJob[Any] | Steps, builder: FlowBuilder, before: Before, prefix: str
) -> Before:
    if isinstance(step, Steps):
        return step.place(builder, before, prefix)
    args = tuple(_resolved(value, before, step) for value in step.args)
    kwargs = {name: _resolved(value, before, step) for name, value in step.kwargs.items()}
    bound = msgspec.structs.replace(step, args=args, kwargs=kwargs)
    return Before((builder.place(bound, after=before.nodes, prefix=prefix),))


def _resolved(value: object, before: Before, step: BoundJob[Any]) -> object:
    if not isinstance(value, Previous):
        return value
    if not before.nodes:
        raise InvalidRequest(
            f"job {step.spec.kind!r} has no step before it, so it cannot take `previous`"
        )
    return before.nodes if before.is_group else before.nodes[0]
