"""The handle of a flow: follow it, add to it, cancel and redrive it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from penstock.api.flows import operations as flows
from penstock.api.flows.records import (
    CancelFlow,
    CreatedFlow,
    Flow,
    FlowMember,
    FlowState,
    ListMembers,
    NewMember,
    NewMembers,
    RedriveFlow,
    WaitForFlow,
)
from penstock.client import channel
from penstock.client.channel import Ask, Channel, run, run_async
from penstock.client.flows.node import Node, edge_of, is_result, member_record
from penstock.client.jobs.handle import Enqueued
from penstock.client.jobs.job import BoundJob, Enqueuing, JobCall
from penstock.client.long_poll import long_poll
from penstock.client.resources.resource import items_of
from penstock.domain.duration import Duration
from penstock.domain.errors import InvalidRequest, QueueNotFound
from penstock.domain.flow.member import MemberState
from penstock.wiring.broker import steady_clock

if TYPE_CHECKING:
    from penstock.client.app import Penstock

_ADDED_AT_ONCE = 1_000  # so that other writers do not wait for long


class FlowHandle:
    """Rejections are raised as PenstockErrors.  All requests have an async version."""

    def __init__(self, app: Penstock, flow_id: str) -> None:
        self._app = app
        self._id: str | None = flow_id

    @property
    def id(self) -> str:
        if self._id is None:
            raise InvalidRequest("the flow is not enqueued yet")
        return self._id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._id or 'not enqueued'}>"

    def status(self) -> Flow:
        return self._channel.request(flows.GET, flow=self.id)

    async def status_async(self) -> Flow:
        found = (await self._app.backend_for_async(None)).channel
        return await found.request_async(flows.GET, flow=self.id)

    def wait(self, timeout: Duration | None = None) -> Flow:
        """Wait until it has ended (see its `state`).  Raises TimeoutError."""
        return run(self._channel, self._wait(timeout))

    async def wait_async(
        self,
        timeout: Duration | None = None,  # noqa: ASYNC109 (the twin of `wait`)
    ) -> Flow:
        found = (await self._app.backend_for_async(None)).channel
        return await run_async(found, self._wait(timeout))

    def members(self, state: MemberState | str | None = None) -> Iterator[FlowMember]:
        """Its members and callbacks, page by page."""
        wanted = None if state is None else MemberState(state)
        return items_of(
            lambda cursor: self._channel.request(
                flows.MEMBERS,
                query=ListMembers(state=wanted, cursor=cursor, limit=1_000),
                flow=self.id,
            ),
            lambda page: page.members,
        )

    async def members_async(self, state: MemberState | str | None = None) -> list[FlowMember]:
        """All of them."""
        found: list[FlowMember] = await self._app.run_blocking(lambda: list(self.members(state)))
        return found

    def cancel(self, reason: str | None = None, *, tx: object = None) -> Flow:
        """Cancel all members that have not ended, running ones as well."""
        return self._app.backend_for(tx).channel.request(
            flows.CANCEL, CancelFlow(reason=reason), tx=tx, flow=self.id
        )

    async def cancel_async(self, reason: str | None = None, *, tx: object = None) -> Flow:
        found = (await self._app.backend_for_async(tx)).channel
        wanted = CancelFlow(reason=reason)
        return await found.request_async(flows.CANCEL, wanted, tx=tx, flow=self.id)

    def redrive(self, member: str | Node[Any] | None = None) -> int:
        """Run the members that failed again, or one of them; returns how many do."""
        named = member.id if isinstance(member, Node) else member
        wanted = RedriveFlow(member=named)
        return self._channel.request(flows.REDRIVE, wanted, flow=self.id).redriven

    async def redrive_async(self, member: str | Node[Any] | None = None) -> int:
        return int(await self._app.run_blocking(lambda: self.redrive(member)))

    def close(self) -> Flow:
        """No more members follow: it ends as soon as its members have ended."""
        return self._channel.request(flows.CLOSE, flow=self.id)

    async def close_async(self) -> Flow:
        closed: Flow = await self._app.run_blocking(self.close)
        return closed

    def add(
        self,
        job: BoundJob[Any] | Enqueuing[..., Any],
        /,
        *args: object,
        after: Iterable[object] = (),
        name: str | None = None,
        **kwargs: object,
    ) -> Node[Any]:
        """Add a member to the stored flow; `after` and arguments may be members of it."""
        node = node_of(job, args, kwargs, after=after, name=name)
        node.has_own_name = name is not None
        self._add([node], tx=None)
        return node

    async def add_async(
        self,
        job: BoundJob[Any] | Enqueuing[..., Any],
        /,
        *args: object,
        after: Iterable[object] = (),
        name: str | None = None,
        **kwargs: object,
    ) -> Any:
        return await self._app.run_blocking(
            lambda: self.add(job, *args, after=after, name=name, **kwargs)
        )

    def add_many(
        self,
        job: Enqueuing[..., Any],
        calls: Iterable[JobCall | Mapping[str, object]],
        *,
        tx: object = None,
    ) -> list[Enqueued[Any]]:
        """Add many members of one kind; arguments by `job.args(…)`, or by name."""
        ids: list[str] = []
        for records in _records_in_parts(job, calls):
            ids += self._send(records, tx=tx).members
        return self._handles(job, ids)

    async def add_many_async(
        self,
        job: Enqueuing[..., Any],
        calls: Iterable[JobCall | Mapping[str, object]],
        *,
        tx: object = None,
    ) -> list[Enqueued[Any]]:
        if tx is None:
            added: list[Enqueued[Any]] = await self._app.run_blocking(
                lambda: self.add_many(job, calls)
            )
            return added
        found = (await self._app.backend_for_async(tx)).channel
        ids: list[str] = []
        for records in _records_in_parts(job, calls):
            wanted = NewMembers(records)
            ids += (await found.request_async(flows.ADD, wanted, tx=tx, flow=self.id)).members
        return self._handles(job, ids)

    # --- private ---

    def _add(self, nodes: Sequence[Node[Any]], tx: object) -> None:
        made = self._send([node.record() for node in nodes], tx=tx)
        for node, message_id in zip(nodes, made.members, strict=True):
            node.enqueued(message_id, self._app.jobs)

    def _send(self, records: list[NewMember], tx: object) -> CreatedFlow:
        wanted = NewMembers(records)
        queues = {record.queue for record in records}
        return with_queues(
            self._app,
            queues,
            tx,
            lambda: self._app.backend_for(tx).channel.request(
                flows.ADD, wanted, tx=tx, flow=self.id
            ),
        )

    def _handles(self, job: Enqueuing[..., Any], ids: list[str]) -> list[Enqueued[Any]]:
        returns = job.bind().spec.returns
        return [Enqueued(one, jobs=self._app.jobs, returns=returns) for one in ids]

    def _wait(self, timeout: Duration | None) -> channel.Flow[Flow]:
        def ask(wait_ms: int) -> Ask:
            return Ask(flows.GET, {"flow": self.id}, query=WaitForFlow(wait_ms=wait_ms))

        def what_runs(found: Flow) -> str | None:
            if found.state is not FlowState.RUNNING:
                return None
            return f"flow {self.id} still runs: {found.remaining} members have not ended"

        return long_poll(self._app.backend, steady_clock(), timeout, ask=ask, what_runs=what_runs)

    @property
    def _channel(self) -> Channel:
        return self._app.backend.channel


def _records_in_parts(
    job: Enqueuing[..., Any], calls: Iterable[JobCall | Mapping[str, object]]
) -> Iterator[list[NewMember]]:
    records = [_record_of(job, call) for call in calls]
    for start in range(0, len(records), _ADDED_AT_ONCE):
        yield records[start : start + _ADDED_AT_ONCE]


def with_queues(
    app: Penstock, queues: set[str], tx: object, do: Callable[[], CreatedFlow]
) -> CreatedFlow:
    """Apply what the application declares of these queues; create missing ones on a server."""
    if tx is None:
        app.apply_declared(queues)
    try:
        return do()
    except QueueNotFound:
        if tx is not None:
            raise
        app.apply_declared(queues, is_missing=True)
        return do()


def node_of(
    job: object,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    *,
    after: Iterable[object] = (),
    name: str | None = None,
) -> Node[Any]:
    """Raises InvalidRequest."""
    if isinstance(job, Enqueuing):
        job = job.bind(*args, **kwargs)
    elif args or kwargs:
        raise InvalidRequest("job.bind(…) already holds the arguments; give no others")
    if not isinstance(job, BoundJob):
        raise InvalidRequest(f"a member is a job or job.bind(…), not {job!r}")
    draft, results = job.draft(is_result)
    inputs: dict[str, Any] = {
        field: value if isinstance(value, Node) else tuple(value)  # type: ignore[arg-type]
        for field, value in results.items()
    }
    for source in inputs.values():
        for node in (source,) if isinstance(source, Node) else source:
            _check_kept(node)
    return Node(
        name or job.spec.kind,
        job.resolved.queue,
        draft,
        after=[edge_of(one) for one in after],
        inputs=inputs,
        returns=job.spec.returns,
    )


def _check_kept(node: Node[Any]) -> None:
    if not node.returns.is_kept:
        raise InvalidRequest(
            f"the result of {node.name!r} is not kept: annotate what its function returns,"
            " or declare the job with result='keep'"
        )


def _record_of(job: Enqueuing[..., Any], call: JobCall | Mapping[str, object]) -> NewMember:
    bound = job.bind(*call.args, **call.kwargs) if isinstance(call, JobCall) else job.bind(**call)
    draft, _ = bound.draft(lambda _: False)
    return member_record(bound.resolved.queue, draft)
