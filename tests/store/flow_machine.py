"""State machine: random graphs of jobs and everything that happens to their messages."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from msgspec.structs import replace

from penstock.domain.errors import MessageNotFound, PenstockError, WrongState
from penstock.domain.flow.member import MemberRole, MemberState, RunsOn
from penstock.domain.flow.plan import PlannedMember
from penstock.domain.limits import DEFAULT_LIMITS, MINUTE
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import LIVE
from penstock.domain.queue.queue import Ordering
from penstock.ports.flows import NewMember
from penstock.ports.store import Claim, Session
from tests.domain.flow.model import FlowModel
from tests.factories import a_draft, an_act, an_id, some_settings
from tests.store.driver import WAIT_S, one_batch
from tests.store.flow_play import HIGH, LOW, MANY, SMALL, FlowPlay

ROLES = ("on_success", "on_failure", "on_finish")
WHICH = st.integers(0, 100)
EDGES = st.lists(st.tuples(st.integers(0, 100), st.sampled_from(RunsOn)), max_size=3)
MEMBERS = st.lists(
    st.fixed_dictionaries(
        {
            "queue": st.sampled_from([0, 1, 2, SMALL, SMALL]),
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


class FlowMachine(FlowPlay):
    """One flow; a standard queue, one ordered by group, one with a limit and dead letters."""

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
            {"max_attempts": 2, "max_body_bytes": LOW},
        ]
        names = ("plain", "grouped", "limited", "dead", "small")
        for name, wanted in zip(names, settings, strict=True):
            made = some_settings(**wanted)
            self.queues.append(
                self.write(
                    lambda s, n=name, m=made: s.queues.add(f"f{example}.{n}", m, now=self.now)
                )
            )
        self.model = FlowModel(sorted(callbacks), is_open=is_open)
        self.model.is_too_large = self.is_too_large
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

    @rule(queue=st.integers(0, SMALL), limit=st.integers(1, 4))
    def claim(self, queue: int, limit: int) -> None:
        wanted = Claim(queue_no=self.queues[queue].queue_no, now=self.now, limit=limit)
        claimed = self.store.claim(wanted).result(WAIT_S)
        self.observe()  # the claim may have ended messages that had fallen due
        for message, _ in claimed.messages:
            name = self.names[message.id]
            if message.dead_from is None:
                assert self.state_of(name) is MemberState.RELEASED, "it runs early, or again"
            self.leases[message.id] = message

    @rule(verbs=st.lists(ENDINGS, min_size=1, max_size=6))
    def work(self, verbs: list[Verb]) -> None:
        """As workers do most of the time, in all queues."""
        self.leases.clear()
        for queue in range(len(self.queues)):
            self.claim(queue, limit=2)
        if self.leases:
            self.act(list(enumerate(verbs)))

    @rule()
    def complete_what_is_there(self) -> None:
        self.work([Verb.COMPLETE] * 10)

    @precondition(lambda self: self.leases)
    @rule(acts=st.lists(st.tuples(WHICH, ENDINGS), min_size=1, max_size=4))
    def act(self, acts: list[tuple[int, Verb]]) -> None:
        """Several at once end in one transaction."""
        held = list(self.leases.values())
        with one_batch(self.store):
            tickets = []
            for which, verb in acts:
                message = held[which % len(held)]
                done = {"result": self.result_of(message)} if verb is Verb.COMPLETE else {}
                act = an_act(verb, message, now=self.now, **done)
                tickets.append(self.store.act([act]))
        for ticket in tickets:
            ticket.result(WAIT_S)
        self.observe()

    @rule(seconds=st.sampled_from([30, 120, 600]), queue=st.integers(0, SMALL))
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

    @rule(limit=st.sampled_from([LOW, HIGH]))
    def limit_bodies(self, limit: int) -> None:
        small = self.queues[SMALL]
        settings = replace(small.settings, max_body_bytes=limit)
        self.queues[SMALL] = self.write(
            lambda s: s.queues.change(small.queue_no, settings=settings, now=self.now)
        )

    @precondition(lambda self: not self.model.is_cancelled)
    @rule()
    def retry(self) -> None:
        """A part of redriving the flow; of a cancelled one it is rejected."""
        self.write(lambda s: s.flows.retry(self.flow.flow_no, message_nos=None, now=self.now))
        self.model.retry()

    @rule(queue=st.integers(0, SMALL), is_meant=st.sampled_from([True, False, False, False]))
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
        if not self.model.is_cancelled:
            self.limit_bodies(HIGH)
            self.retry()
            self.compare()
            self.redrive_the_flow()
            self.compare()
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
