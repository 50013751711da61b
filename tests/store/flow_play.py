"""A play of one flow beside its model: the queues, the members, and what is seen of them.

What became of each message is read from the store, which other tests compare with the lifecycle;
what follows from that in the flow is compared with the model.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from penstock.domain.flow.flow import Flow
from penstock.domain.flow.member import MemberState, RunsOn
from penstock.domain.flow.plan import PlannedMember, check_plan
from penstock.domain.limits import DEFAULT_LIMITS
from penstock.domain.message import lifecycle
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.queue.queue import Queue
from penstock.ports.flows import NewMember
from penstock.ports.store import Session, Store
from tests.clocks import ManualClock
from tests.domain.flow.model import FlowModel
from tests.factories import a_draft, an_id
from tests.store.driver import WAIT_S

T = TypeVar("T")

MANY = 1_000
SMALL = 4  # the place of a queue that takes small bodies only, until its limit is raised
LOW, HIGH = 100, 10_000


class FlowPlay(RuleBasedStateMachine):
    store: Store  # given by the test
    model: FlowModel
    flow: Flow

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.queues: list[Queue] = []
        self.names: dict[str, str] = {}  # by id
        self.leases: dict[str, Message] = {}
        self.claims: dict[str, int] = {}  # how often each member was claimed for the first time
        self.numbers = itertools.count(1)
        self.inputs: dict[str, list[str]] = {}

    @property
    def now(self) -> int:
        return self.clock.now()

    def end(self, message_id: str) -> None:
        def cancel(message: Message, _: Queue) -> Message:
            return lifecycle.cancel(message, is_running_ok=True)

        self.write(lambda s: s.messages.change(message_id, cancel, now=self.now))

    def planned(
        self, members: list[dict[str, Any]]
    ) -> tuple[list[PlannedMember], dict[str, dict[str, RunsOn]]]:
        """A graph without cycles: each member waits for earlier ones."""
        known = list(self.model.states)
        planned, graph = [], {}
        for given in members:
            name = f"m{next(self.numbers)}"
            parents = {known[i % len(known)]: on for i, on in given["parents"]} if known else {}
            draft = {k: given[k] for k in ("group", "delay_ms", "expires_in_ms")}
            if given["queue"] == SMALL:
                # Of new members, which have not ended: otherwise the whole plan may be rejected.
                self.inputs[name] = [p for p in parents if p in graph and parents[p] is RunsOn.DONE]
                draft["body"] = "{}"
            planned.append(
                PlannedMember(
                    queue=str(given["queue"]),
                    draft=a_draft(**draft),
                    name=name,
                    after=parents,
                    inputs={f"of_{p}": p for p in self.inputs.get(name, ())},
                )
            )
            graph[name] = parents
            known.append(name)
        return check_plan(planned, DEFAULT_LIMITS), graph

    def with_ids(self, planned: Iterable[PlannedMember]) -> list[NewMember]:
        return [NewMember(m, self.named(m.name or ""), self.queues[int(m.queue)]) for m in planned]

    def named(self, name: str) -> str:
        made = an_id(self.now)
        self.names[made] = name
        return made

    def result_of(self, message: Message) -> str:
        """Of every second member one that is too large for the small queue."""
        number = self.names[message.id].removeprefix("m")
        size = LOW if number.isdigit() and int(number) % 2 else 1
        return f'"{"x" * size}"'

    def is_too_large(self, name: str) -> bool:
        if self.queues[SMALL].settings.max_body_bytes == HIGH or not self.inputs.get(name):
            return False
        ids = [self.id_of(parent) for parent in self.inputs[name]]
        found = self.store.read(lambda s: s.results.of(ids)).result(WAIT_S)
        results = [found[one].result or "" for one in ids if one in found]
        return any(len(result) > LOW for result in results)

    def id_of(self, name: str) -> str:
        return next(i for i, known in self.names.items() if known == name)

    def state_of(self, name: str) -> MemberState:
        return self.model.all_states[name]

    def messages(self) -> dict[str, Message]:
        def find(session: Session) -> dict[str, Message]:
            found = {i: session.messages.find(i) for i in self.names}
            return {i: m for i, m in found.items() if m is not None}

        return self.store.read(find).result(WAIT_S)

    def observe(self) -> None:
        """Tell the model which messages have ended or come back since the last time."""
        messages = self.messages()
        ended: dict[str, MemberState] = {}
        back: list[str] = []
        for message_id, name in self.names.items():
            before = self.model.all_states.get(name)
            found = messages.get(message_id)
            is_dead = found is not None and (
                found.state is State.DEAD or found.dead_from is not None
            )
            if before is MemberState.RELEASED and is_dead:
                ended[name] = MemberState.DEAD
            elif before is MemberState.RELEASED and found is None:
                ended[name] = self.outcome_of(message_id)
            elif before is MemberState.DEAD and found is None:
                self.model.bury_for_good(name)
            elif before is MemberState.DEAD and not is_dead:
                back.append(name)
        if back:
            self.model.come_back(back)
        if ended:
            self.model.end(ended)

    def outcome_of(self, message_id: str) -> MemberState:
        found = self.store.read(lambda s: s.results.of([message_id])).result(WAIT_S)
        return MemberState(found[message_id].state.value)

    def look(self, session: Session) -> tuple[Flow, dict[str, MemberState]]:
        flow = session.flows.find(self.flow.id)
        members = session.flows.members(flow.flow_no, state=None, after_no=0, limit=MANY)
        return flow, {self.names[m.id]: m.state for m in members}

    def write(self, what: Any) -> Any:
        return self.store.write(what).result(WAIT_S)
