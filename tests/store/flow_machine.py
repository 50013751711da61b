"""State machine: random graphs of jobs and everything that happens to their messages.

What became of each message is read from the store, which other tests compare with the lifecycle;
what follows from that in the flow is compared with the model.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from penstock.domain.errors import MessageNotFound, PenstockError, WrongState
from penstock.domain.flow.flow import Flow
from penstock.domain.flow.member import MemberRole, MemberState, RunsOn
from penstock.domain.flow.plan import PlannedMember, check_plan
from penstock.domain.limits import DEFAULT_LIMITS, MINUTE
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import LIVE, Message, State
from penstock.domain.queue.queue import Ordering, Queue
from penstock.ports.flows import NewMember
from penstock.ports.store import Claim, Session, Store
from tests.clocks import ManualClock
from tests.domain.flow.model import FlowModel
from tests.factories import a_draft, an_act, an_id, some_settings
from tests.store.driver import WAIT_S, one_batch

T = TypeVar("T")

MANY = 1_000
ROLES = ("on_success", "on_failure", "on_finish")
WHICH = st.integers(0, 100)
EDGES = st.lists(st.tuples(st.integers(0, 100), st.sampled_from(RunsOn)), max_size=3)
MEMBERS = st.lists(
    st.fixed_dictionaries(
        {
            "queue": st.integers(0, 2),
            "parents": EDGES,
            "group": st.sampled_from([None, "a", "b"]),
            "delay_ms": st.sampled_from([None, None, MINUTE]),
            "expires_in_ms": st.sampled_from([None, None, None, 3 * MINUTE]),
        }
    ),
    min_size=1,
    max_size=8,
)
ENDINGS = st.sampled_from([Verb.COMPLETE, Verb.COMPLETE, Verb.BURY, Verb.CANCEL, Verb.FAIL])

_examples = itertools.count(1)


class FlowMachine(RuleBasedStateMachine):
    """One flow; a standard queue, one ordered by group, one with a limit and dead letters."""

    store: Store  # given by the test

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.queues: list[Queue] = []
        self.names: dict[str, str] = {}  # by id
        self.leases: dict[str, Message] = {}
        self.claims: dict[str, int] = {}  # how often each member was claimed for the first time
        self.numbers = itertools.count(1)

    @property
    def now(self) -> int:
        return self.clock.now()

    @initialize(
        members=MEMBERS,
        callbacks=st.sets(st.sampled_from(ROLES)),
        is_open=st.booleans(),
        max_leased=st.sampled_from([None, 2]),
    )
    def create(
        self,
        members: list[dict[str, Any]],
        callbacks: set[str],
        is_open: bool,
        max_leased: int | None,
    ) -> None:
        example = next(_examples)
        dead = f"f{example}.dead"
        settings: list[dict[str, Any]] = [
            {"max_attempts": 2},
            {"ordering": Ordering.GROUP, "max_attempts": 2},
            {"max_leased": max_leased, "dead_letter_queue": dead, "max_attempts": 2},
            {},
        ]
        for name, wanted in zip(("plain", "grouped", "limited", "dead"), settings, strict=True):
            made = some_settings(**wanted)
            self.queues.append(
                self.write(
                    lambda s, n=name, m=made: s.queues.add(f"f{example}.{n}", m, now=self.now)
                )
            )
        self.model = FlowModel(sorted(callbacks), is_open=is_open)
        planned, graph = self.planned(members)
        new = self.with_ids(planned)
        new += [
            NewMember(
                PlannedMember(queue="plain", draft=a_draft(), name=role, role=MemberRole(role)),
                self.named(role),
                self.queues[0],
            )
            for role in sorted(callbacks)
        ]
        self.flow = self.write(
            lambda s: s.flows.create(
                an_id(), "nightly", new, is_open=is_open, limits=DEFAULT_LIMITS, now=self.now
            )
        )
        self.model.add(graph)

    @rule(members=MEMBERS)
    def add(self, members: list[dict[str, Any]]) -> None:
        flow = self.model
        planned, graph = self.planned(members[:3])
        new = self.with_ids(planned)
        try:
            self.write(
                lambda s: s.flows.add(self.flow.id, new, limits=DEFAULT_LIMITS, now=self.now)
            )
        except WrongState:
            assert flow.is_cancelled or flow.expected.outcome is not None
        else:
            flow.add(graph)

    @rule(queue=st.integers(0, 3), limit=st.integers(1, 4))
    def claim(self, queue: int, limit: int) -> None:
        wanted = Claim(queue_no=self.queues[queue].queue_no, now=self.now, limit=limit)
        claimed = self.store.claim(wanted).result(WAIT_S)
        self.observe()  # the claim may have ended messages that had fallen due
        for message, _ in claimed.messages:
            name = self.names[message.id]
            if message.dead_from is None:
                assert self.state_of(name) is MemberState.RELEASED, "it runs early, or again"
            self.leases[message.id] = message

    @precondition(lambda self: self.leases)
    @rule(acts=st.lists(st.tuples(WHICH, ENDINGS), min_size=1, max_size=4))
    def act(self, acts: list[tuple[int, Verb]]) -> None:
        """Several at once end in one transaction."""
        held = list(self.leases.values())
        with one_batch(self.store):
            tickets = []
            for which, verb in acts:
                act = an_act(verb, held[which % len(held)], now=self.now)
                tickets.append(self.store.act([act]))
        for ticket in tickets:
            ticket.result(WAIT_S)
        self.observe()

    @rule(seconds=st.sampled_from([30, 120, 600]), queue=st.integers(0, 3))
    def time_passes(self, seconds: int, queue: int) -> None:
        """Leases are lost, delays fall due, messages expire."""
        self.clock.advance(seconds=seconds)
        no = self.queues[queue].queue_no
        self.write(lambda s: s.maintenance.expire(no, now=self.now, limit=MANY))
        self.observe()
        self.write(lambda s: s.maintenance.return_due(no, now=self.now, limit=MANY))
        self.observe()

    @rule(which=WHICH, how=st.sampled_from(["cancel", "bury", "complete", "reschedule"]))
    def intervene(self, which: int, how: str) -> None:
        names = sorted(self.model.all_states)
        name = names[which % len(names)]
        message_id = self.id_of(name)
        before = self.state_of(name)
        change = {
            "cancel": lambda m, _: lifecycle.cancel(m, is_running_ok=True),
            "bury": lambda m, _: lifecycle.bury(m, is_running_ok=True),
            "complete": lambda m, _: lifecycle.complete_by_hand(m),
            "reschedule": lambda m, _: lifecycle.reschedule(m, due_at=self.now, now=self.now),
        }[how]
        try:
            self.write(lambda s: s.messages.change(message_id, change, now=self.now))
        except (MessageNotFound, WrongState):
            was_refused = True
        else:
            was_refused = False
        if was_refused:
            assert before is not MemberState.BLOCKED or how in ("bury", "reschedule")
            return
        if before is MemberState.BLOCKED:
            assert how in ("cancel", "complete")
            ended = MemberState.CANCELLED if how == "cancel" else MemberState.DONE
            self.model.end_blocked(name, ended)
        else:
            self.observe()

    @rule(which=WHICH)
    def redrive_one(self, which: int) -> None:
        names = sorted(self.model.all_states)
        message_id = self.id_of(names[which % len(names)])

        def redrive(session: Session) -> None:
            found = session.messages.find(message_id)
            if found is None:
                raise MessageNotFound(message_id)
            home = session.queues.get(found.dead_from or found.queue_no)
            session.messages.change(
                message_id, lambda m, _: transfer.redrive(m, home, now=self.now), now=self.now
            )

        try:
            self.write(redrive)
        except PenstockError:
            return
        self.observe()

    @rule()
    def redrive_the_flow(self) -> None:
        self.write(
            lambda s: s.flows.redrive_some(self.flow.flow_no, after_no=0, limit=MANY, now=self.now)
        )
        self.observe()

    @rule(queue=st.integers(0, 3), is_meant=st.sampled_from([True, False, False, False]))
    def purge(self, queue: int, is_meant: bool) -> None:
        if is_meant:
            no = self.queues[queue].queue_no
            self.write(lambda s: s.messages.purge(no, limit=MANY, now=self.now))
            self.observe()

    @rule()
    def close(self) -> None:
        self.write(lambda s: s.flows.close(self.flow.id, now=self.now))
        self.model.close()

    @rule(is_meant=st.sampled_from([True, False, False, False, False, False]))
    def cancel(self, is_meant: bool) -> None:
        if not is_meant:
            return
        has_ended = self.model.expected.outcome is not None and not self.model.is_cancelled
        try:
            self.write(lambda s: s.flows.cancel(self.flow.id, reason=None, now=self.now))
        except WrongState:
            assert has_ended
            return
        assert not has_ended
        self.model.cancel()
        self.compare()
        while self.write(
            lambda s: s.flows.cancel_some(self.flow.flow_no, reason=None, limit=MANY, now=self.now)
        ):
            self.observe()

    @invariant()
    def compare(self) -> None:
        if not self.names:
            return
        flow, states = self.store.read(self.look).result(WAIT_S)
        assert states == self.model.all_states
        seen = (flow.remaining, flow.done, flow.failed, flow.skipped, flow.outcome)
        assert seen == self.model.expected
        assert flow.total == len(self.model.states)

    def teardown(self) -> None:
        """No member is stranded: once everything that is sent gets done, the flow ends."""
        if not self.names:
            return
        for _ in range(100):
            live = {i: m for i, m in self.messages().items() if m.dead_from is None}
            live = {i: m for i, m in live.items() if m.state in LIVE}
            if not live:
                break
            for message_id in live:
                self.end(message_id)
                # One by one, as it was done: which parent fails first makes a difference.
                self.observe()
            self.compare()
        self.close()
        self.compare()
        assert self.model.expected.outcome is not None
        assert not self.model.expected.remaining
        callbacks = self.model.callbacks
        assert callbacks.get("on_finish") is not MemberState.BLOCKED
        assert len(self.model.sent) == len(set(self.model.sent)), "sent more than once"

    # --- parts ---

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
            planned.append(
                PlannedMember(
                    queue=str(given["queue"]), draft=a_draft(**draft), name=name, after=parents
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
