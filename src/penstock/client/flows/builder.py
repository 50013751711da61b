"""Flows that are built member by member, and enqueued as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from penstock.api.flows import operations as flows
from penstock.api.flows.records import CreatedFlow, NewFlow
from penstock.client.flows.handle import FlowHandle, node_of, with_queues
from penstock.client.flows.node import Node, member_record
from penstock.client.flows.steps import Before, Steps
from penstock.client.jobs.current import running_job_label
from penstock.client.jobs.job import BoundJob, Enqueuing
from penstock.domain.duration import Duration, as_ms
from penstock.domain.errors import InvalidRequest

if TYPE_CHECKING:
    from penstock.client.app import Penstock


class FlowBuilder(FlowHandle):
    """Add members, then `enqueue`; as a context manager it enqueues at the end of the block.

    Once enqueued, it is the handle of the flow.
    """

    def __init__(
        self,
        app: Penstock,
        name: str,
        *,
        tx: object = None,
        callbacks: Mapping[str, BoundJob[Any]],
        is_open: bool = False,
        dedup_key: str | None = None,
        dedup_window: Duration | None = None,
    ) -> None:
        self._app = app
        self._id = None
        self.name = name
        self._tx = tx
        self._callbacks = callbacks
        self._is_open = is_open
        self._nodes: dict[str, Node[Any]] = {}
        self._dedup = dedup_fields(dedup_key, dedup_window)
        self.is_duplicate = False  # True: it is an earlier flow with the same dedup key

    def add(
        self,
        job: BoundJob[Any] | Enqueuing[..., Any] | Steps,
        /,
        *args: object,
        after: Iterable[object] = (),
        name: str | None = None,
        **kwargs: object,
    ) -> Any:
        """Add a job; arguments that are members stand for their results.

        A chain or a group is added with all its members, named `name.…`; returns the last ones.
        """
        if isinstance(job, Steps):
            self._check_open()
            before = Before(tuple(self._plain(one) for one in after))
            ends = job.place(self, before, f"{name}." if name else "").nodes
            return ends[0] if len(ends) == 1 else list(ends)
        if self._id is not None:
            return super().add(job, *args, after=after, name=name, **kwargs)
        return self._named(node_of(job, args, kwargs, after=after, name=name), name is not None)

    def __getitem__(self, name: str) -> Node[Any]:
        return self._nodes[name]

    def place(self, job: BoundJob[Any], *, after: Iterable[Node[Any]], prefix: str) -> Node[Any]:
        node = node_of(job, (), {}, after=after)
        node.name = prefix + node.name
        return self._named(node, is_given=False)

    def enqueue(self) -> Self:
        """Store it; members without parents are sent at once."""
        tx = self._tx

        def create() -> CreatedFlow:
            channel = self._app.backend_for(tx).channel
            return channel.request(flows.CREATE, self._record(), tx=tx)

        self._created(with_queues(self._app, self._queues, tx, create))
        return self

    async def enqueue_async(self) -> Self:
        tx = self._tx
        if tx is None:
            await self._app.run_blocking(self.enqueue)
            return self
        channel = (await self._app.backend_for_async(tx)).channel
        self._created(await channel.request_async(flows.CREATE, self._record(), tx=tx))
        return self

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.enqueue()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            await self.enqueue_async()

    # --- private ---

    @property
    def _queues(self) -> set[str]:
        members = {node.queue for node in self._nodes.values()}
        return members | {job.resolved.queue for job in self._callbacks.values()}

    def _named(self, node: Node[Any], is_given: bool) -> Node[Any]:
        """Give it a name that is free in this flow; raises InvalidRequest if a given one is not."""
        name, number = node.name, 1
        while node.name in self._nodes:
            if is_given:
                raise InvalidRequest(f"the flow already has a member {name!r}; give another name")
            number += 1
            node.name = f"{name}-{number}"
        self._nodes[node.name] = node
        return node

    def _plain(self, given: object) -> Node[Any]:
        if isinstance(given, Node):
            return given
        raise InvalidRequest(
            "a chain or a group can only come after members, not after .failed() or .ended()"
        )

    def _check_open(self) -> None:
        if self._id is not None:
            raise InvalidRequest("the flow is already enqueued: add jobs one at a time")

    def _record(self) -> NewFlow:
        self._check_open()
        callbacks: dict[str, Any] = {}
        for role, job in self._callbacks.items():
            draft, _ = job.draft(lambda _: False)
            callbacks[role] = member_record(job.resolved.queue, draft)
        running = running_job_label()
        return NewFlow(
            name=self.name,
            members=[node.record() for node in self._nodes.values()],
            is_open=self._is_open,
            created_by=None if running is None else running[0],
            **callbacks,
            **self._dedup,
        )

    def _created(self, made: CreatedFlow) -> None:
        self._id = made.flow.id
        self.is_duplicate = made.is_duplicate
        if made.is_duplicate and not made.members:  # created with others
            return
        for node, message_id in zip(self._nodes.values(), made.members, strict=True):
            node.enqueued(message_id, self._app.jobs)


def dedup_fields(key: str | None, window: Duration | None) -> dict[str, Any]:
    """Fields of a new flow; raises InvalidRequest."""
    if window is None:
        return {} if key is None else {"dedup_key": key}
    if key is None:
        raise InvalidRequest("dedup_window needs a dedup_key")
    return {"dedup_key": key, "dedup_window_ms": as_ms("dedup_window", window)}


class JobBatch(FlowBuilder):
    """A set of jobs with callbacks, open until it is closed.

    As a context manager it is created at the beginning of the block and closed at its end; if the
    block raises, the batch is cancelled.
    """

    def __enter__(self) -> Self:
        return self.enqueue()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.cancel(f"the program that fills the batch raised {kind.__name__}")

    async def __aenter__(self) -> Self:
        return await self.enqueue_async()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._app.run_blocking(lambda: self.__exit__(kind, error, trace))
