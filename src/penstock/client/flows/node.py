"""Members of a flow that is being built, and how they depend on each other."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from penstock.api import messages
from penstock.api.flows.records import After, NewMember
from penstock.client.jobs.handle import Enqueued
from penstock.client.values.return_value import ReturnValue
from penstock.domain.datetimes import moment_of
from penstock.domain.duration import Duration
from penstock.domain.errors import InvalidRequest
from penstock.domain.flow.member import RunsOn
from penstock.domain.message.draft import Draft
from penstock.domain.message.lifecycle import State

if TYPE_CHECKING:
    from penstock.api.messages import Acted
    from penstock.client.jobs.jobs import Jobs

R_co = TypeVar("R_co", covariant=True)
_FIELDS = messages.Draft.__struct_fields__[1:]


class Node(Generic[R_co]):
    """A member: as an argument of another one it stands for its result.

    After the flow was enqueued, it is a handle like that of an enqueued job.
    """

    def __init__(
        self,
        name: str,
        queue: str,
        draft: Draft,
        *,
        after: Sequence[Edge],
        inputs: dict[str, Node[Any] | tuple[Node[Any], ...]],
        returns: ReturnValue,
    ) -> None:
        self.name = name
        self.has_own_name = True  # False: it needs none, because it is stored at once
        self.queue = queue
        self._draft = draft
        self._after = after
        self._inputs = inputs
        self._returns = returns
        self._handle: Enqueued[R_co] | None = None

    def __repr__(self) -> str:
        return f"<member {self.name!r}>"

    def failed(self) -> Edge:
        """In `after`: run if this member fails."""
        return Edge(self, RunsOn.FAILED)

    def ended(self) -> Edge:
        """In `after`: run when this member has ended, whatever became of it."""
        return Edge(self, RunsOn.ENDED)

    @property
    def id(self) -> str:
        return self.handle.id

    @property
    def handle(self) -> Enqueued[R_co]:
        """Raises InvalidRequest until its flow is enqueued."""
        if self._handle is None:
            raise InvalidRequest(f"member {self.name!r} is not enqueued yet")
        return self._handle

    def result(self, timeout: Duration | None = None) -> Any:
        return self.handle.result(timeout)

    async def result_async(
        self,
        timeout: Duration | None = None,  # noqa: ASYNC109 (the twin of `result`)
    ) -> Any:
        return await self.handle.result_async(timeout)

    def __await__(self) -> Generator[Any, None, Any]:
        return self.handle.__await__()

    def state(self) -> State:
        """`waiting` until its parents allow it to run."""
        return self.handle.state()

    async def state_async(self) -> State:
        return await self.handle.state_async()

    def cancel(self, reason: str | None = None) -> Acted:
        """Cancel it, while it waits or runs; members that need it are cancelled, too."""
        return self.handle.cancel(reason)

    async def cancel_async(self, reason: str | None = None) -> Acted:
        return await self.handle.cancel_async(reason)

    # --- for the flow ---

    @property
    def returns(self) -> ReturnValue:
        return self._returns

    def enqueued(self, message_id: str, jobs: Jobs) -> None:
        self._handle = Enqueued(message_id, jobs=jobs, returns=self._returns)

    @property
    def ref(self) -> str:
        """How other members name it: an id once it is stored."""
        return self.name if self._handle is None else self._handle.id

    def record(self) -> NewMember:
        return member_record(
            self.queue,
            self._draft,
            name=self.name if self.has_own_name else None,
            after=tuple(
                edge.node.ref if edge.on is RunsOn.DONE else After(edge.node.ref, edge.on)
                for edge in self._after
            ),
            inputs={
                field: source.ref if isinstance(source, Node) else tuple(n.ref for n in source)
                for field, source in self._inputs.items()
            },
        )


class Edge(msgspec.Struct, frozen=True):
    node: Node[Any]
    on: RunsOn = RunsOn.DONE


def edge_of(given: object) -> Edge:
    if isinstance(given, Edge):
        return given
    if isinstance(given, Node):
        return Edge(given)
    raise InvalidRequest(f"after takes members of the flow, not {given!r}")


def is_result(value: object) -> bool:
    """Whether an argument stands for results; raises InvalidRequest if only a part of it does."""
    if isinstance(value, Node):
        return True
    if not isinstance(value, list | tuple) or not any(isinstance(one, Node) for one in value):
        return False
    if all(isinstance(one, Node) for one in value):
        return True
    raise InvalidRequest("a list with a member in it must contain members only")


def member_record(queue: str, draft: Draft, **more: Any) -> NewMember:
    given = {name: getattr(draft, name) for name in _FIELDS}
    for name in ("due_at", "expires_at"):
        if given[name] is not None:
            given[name] = moment_of(given[name])
    return NewMember(msgspec.Raw(draft.body.encode()), **given, queue=queue, **more)
