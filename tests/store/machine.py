"""State machine: random calls to a store and to the model, compared after every step."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec.structs import replace

from penstock.domain.errors import PenstockError
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.history import Attempt, HistoryFilter
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.queue.queue import DedupUntil, Ordering, Queue, QueueSettings, Redelivery
from penstock.ports.store import Browse, Claim, Claimed, Session, Store
from penstock.ports.ticket import Ticket
from tests.clocks import ManualClock
from tests.factories import a_new_message, an_act, some_settings
from tests.store.comparable import in_line, plain, plain_acted, plain_claimed, plain_sent
from tests.store.counter_checks import held_without_reason
from tests.store.driver import WAIT_S, one_batch
from tests.store.model import End, Model
from tests.store.strategies import (
    ACTS,
    CLAIMS,
    DRAFTS,
    MOMENTS,
    MOSTLY_COMPLETE,
    MOSTLY_ENDED,
    QUEUES,
    SETTINGS,
    WHICH,
    allowed,
)

STATES = (State.WAITING, State.READY, State.LEASED, State.DEAD)
MANY = 1_000
INTERVENTIONS = ("cancel", "bury", "reschedule", "redrive", "cancel running", "bury running")

_examples = itertools.count(1)


class StoreMachine(RuleBasedStateMachine):
    """Three queues: a standard one and one ordered by group, with dead letters to the third.

    All may have limits, and be fair to groups.
    """

    store: Store  # given by the test

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.model = Model()
        self.queues: list[Queue] = []
        self.leases: list[Message] = []  # every claimed message as it was returned, stale or not
        self.sent_ids: list[str] = []

    @property
    def now(self) -> int:
        return self.clock.now()

    @initialize(
        settings=st.tuples(SETTINGS, SETTINGS, SETTINGS),
        dead_ordering=st.sampled_from(Ordering),
        drafts=st.lists(st.tuples(QUEUES, DRAFTS), min_size=4, max_size=8),
    )
    def make_queues(
        self,
        settings: tuple[dict[str, Any], ...],
        dead_ordering: Ordering,
        drafts: list[tuple[int, dict[str, Any]]],
    ) -> None:
        example = next(_examples)
        dead = f"e{example}.dead"
        kinds: list[tuple[str, dict[str, Any]]] = [
            (f"e{example}.standard", {"dead_letter_queue": dead}),
            (f"e{example}.grouped", {"dead_letter_queue": dead, "ordering": Ordering.GROUP}),
            (dead, {"ordering": dead_ordering}),
        ]
        for (name, fixed), drawn in zip(kinds, settings, strict=True):
            is_ordered = fixed.get("ordering") is Ordering.GROUP
            wanted = some_settings(**allowed(drawn, is_ordered=is_ordered), **fixed)
            self.queues.append(self.add_queue(name, wanted))
            self.model.keep(self.queues[-1], now=self.now)
        self.submit(drafts, [], [])()

    @rule(ms=MOMENTS, queue=QUEUES, draft=DRAFTS)
    def send(self, ms: int, queue: int, draft: dict[str, Any]) -> None:
        self.clock.advance(ms=ms)
        self.submit([(queue, draft)], [], [])()

    @rule(ms=MOMENTS, claim=CLAIMS)
    def claim(self, ms: int, claim: dict[str, Any]) -> None:
        self.clock.advance(ms=ms)
        self.submit([], [], [claim])()

    @precondition(lambda self: self.leases)
    @rule(ms=MOMENTS, act=ACTS)
    def act(self, ms: int, act: dict[str, Any]) -> None:
        self.clock.advance(ms=ms)
        self.submit([], [act], [])()

    @rule(queue=QUEUES, verb=MOSTLY_COMPLETE, until=MOSTLY_ENDED)
    def handle_what_is_sent_again(self, queue: int, verb: Verb, until: DedupUntil) -> None:
        """Take a key, claim its message and act on it, and send the key again after each step."""
        draft = {"dedup_key": "x", "dedup_until": until, "group": "a"}
        claim = {"queue": queue, "limit": 4, "in_a_row": False, "claim_key": None, "kinds": None}
        before = len(self.leases)
        self.submit([(queue, draft)], [], [])()
        self.submit([], [], [claim])()
        self.submit([(queue, draft)], [], [])()
        acts = [{"verb": verb, "which": n} for n in range(len(self.leases) - before)]
        with one_batch(self.store):  # the order in which groups are admitted depends on it
            check = self.submit([], acts, [])
        check()
        self.submit([(queue, draft)], [], [])()

    @rule(
        ms=MOMENTS,
        drafts=st.lists(st.tuples(QUEUES, DRAFTS), max_size=5),
        acts=st.lists(ACTS, max_size=4),
        claims=st.lists(CLAIMS, max_size=3),
    )
    def many_at_once(
        self,
        ms: int,
        drafts: list[tuple[int, dict[str, Any]]],
        acts: list[dict[str, Any]],
        claims: list[dict[str, Any]],
    ) -> None:
        self.clock.advance(ms=ms)
        with one_batch(self.store):
            check = self.submit(drafts, acts if self.leases else [], claims)
        check()

    @precondition(lambda self: self.model.messages)
    @rule(which=WHICH, how=st.sampled_from(INTERVENTIONS), ms=MOMENTS)
    def intervene(self, which: int, how: str, ms: int) -> None:
        ids = sorted(self.model.messages)
        message_id, now = ids[which % len(ids)], self.now
        target = self.home_of(self.model.messages[message_id])
        change: dict[str, Callable[[Message, Queue], Message]] = {
            "cancel": lambda m, _: lifecycle.cancel(m, reason="by hand"),
            "bury": lambda m, _: lifecycle.bury(m, reason="by hand"),
            "reschedule": lambda m, _: lifecycle.reschedule(m, due_at=now + ms, now=now),
            "redrive": lambda m, _: transfer.redrive(m, target, now=now),
            "cancel running": lambda m, _: lifecycle.cancel(m, is_running_ok=True),
            "bury running": lambda m, _: lifecycle.bury(m, is_running_ok=True),
        }
        expected = refusal_of(lambda: self.model.change(message_id, change[how], now=now))
        found = refusal_of(
            lambda: self.write(lambda s: s.messages.change(message_id, change[how], now=now))
        )
        assert found == expected

    @rule(queue=QUEUES, to=st.sampled_from([None, None, 0, 1]), limit=st.sampled_from([1, MANY]))
    def redrive(self, queue: int, to: int | None, limit: int) -> None:
        no = self.queues[queue].queue_no
        target = None if to is None else self.queues[to].queue_no
        found = self.write(lambda s: s.messages.redrive(no, to=target, limit=limit, now=self.now))
        assert found == self.model.redrive(no, to=target, limit=limit, now=self.now)

    @rule(queue=QUEUES, is_meant=st.sampled_from([True, False, False, False]))
    def purge(self, queue: int, is_meant: bool) -> None:
        if is_meant:
            no = self.queues[queue].queue_no
            # The number is not compared: the store may have dropped keys whose window is over.
            self.write(lambda s: s.messages.forget_keys(no, limit=MANY))
            self.model.forget_keys(no)
            found = self.write(lambda s: s.messages.purge(no, limit=MANY, now=self.now))
            assert found == self.model.purge(no, now=self.now)

    @rule(queue=QUEUES, limit=st.sampled_from([1, MANY]))
    def return_due(self, queue: int, limit: int) -> None:
        no = self.queues[queue].queue_no
        found = self.write(lambda s: s.maintenance.return_due(no, now=self.now, limit=limit))
        assert found == self.model.return_due(no, now=self.now, limit=limit)

    @rule(queue=QUEUES)
    def expire(self, queue: int) -> None:
        no = self.queues[queue].queue_no
        found = self.write(lambda s: s.maintenance.expire(no, now=self.now, limit=MANY))
        assert found == self.model.expire(no, now=self.now)

    @rule(queue=QUEUES, is_paused=st.booleans())
    def pause(self, queue: int, is_paused: bool) -> None:
        no = self.queues[queue].queue_no
        self.keep(queue, lambda s: s.queues.change(no, is_paused=is_paused, now=self.now))

    @rule(queue=QUEUES, is_held=st.booleans())
    def hold(self, queue: int, is_held: bool) -> None:
        no = self.queues[queue].queue_no

        def change(session: Session) -> Queue:
            if is_held:
                session.queues.hold([no], by="a circuit")
            else:
                session.queues.unhold([no])
            return session.queues.get(no)

        self.keep(queue, change)

    @rule(queue=QUEUES, drawn=SETTINGS, redelivery=st.sampled_from(Redelivery))
    def change_settings(self, queue: int, drawn: dict[str, Any], redelivery: Redelivery) -> None:
        before = self.queues[queue]
        place = Redelivery.FRONT if before.is_ordered else redelivery
        taken = allowed(drawn, is_ordered=before.is_ordered)
        wanted = replace(before.settings, redelivery=place, **taken)
        self.keep(queue, lambda s: s.queues.change(before.queue_no, settings=wanted, now=self.now))

    @invariant()
    def store_and_model_agree(self) -> None:
        if not self.queues:
            return
        assert self.store.read(held_without_reason).result(WAIT_S) == []
        for no, (counts, messages) in self.store.read(self.look).result(WAIT_S).items():
            assert counts == self.model.counts(no)
            assert counts.is_balanced
            expected = self.model.of(no, STATES)
            assert {m.id: plain(m) for m in messages} == {m.id: plain(m) for m in expected}
            assert in_line(messages) == in_line(expected)

    def teardown(self) -> None:
        """At the end, history must agree."""
        ends, attempts = self.store.read(self.look_back).result(WAIT_S)
        for no, found in ends.items():
            assert sorted(found, key=str) == sorted(self.model.ends[no], key=str)
        for message_id, recorded in attempts.items():
            expected = self.model.attempts.get(message_id, [])
            assert recorded == [replace(a, message_no=0) for a in expected]

    def submit(
        self,
        drafts: list[tuple[int, dict[str, Any]]],
        acts: list[dict[str, Any]],
        claims: list[dict[str, Any]],
    ) -> Callable[[], None]:
        """Submit everything to the store; returns a function that compares the answers."""
        new = [a_new_message(self.queues[q], now=self.now, **draft) for q, draft in drafts]
        self.sent_ids += [n.message.id for n in new]
        # Recent leases more often: an old one is nearly always stale.
        held = [self.leases[-1 - act["which"] % len(self.leases)] for act in acts]
        acts = [{name: value for name, value in a.items() if name != "which"} for a in acts]
        planned = [
            an_act(act.pop("verb"), m, now=self.now, text="so", **act)
            for act, m in zip(acts, held, strict=True)
        ]
        wanted = [
            Claim(
                queue_no=self.queues[c["queue"]].queue_no,
                now=self.now,
                limit=c["limit"],
                in_a_row=c["in_a_row"] and c["kinds"] is None,
                claim_key=c["claim_key"],
                kinds=c["kinds"],
            )
            for c in claims
        ]
        # Claims first: inside a batch they run last anyway.
        claim_tickets = [self.store.claim(claim) for claim in wanted]
        act_tickets = [self.store.act([act]) for act in planned]
        send_tickets = [self.store.send([n]) for n in new]

        def check() -> None:
            sent = [one(ticket.result(WAIT_S)) for ticket in send_tickets]
            acted = [one(ticket.result(WAIT_S)) for ticket in act_tickets]
            claimed = [answer_of(ticket) for ticket in claim_tickets]
            assert list(map(plain_sent, sent)) == self.model.send(new)
            ids = [m.id for m in held]
            assert list(map(plain_acted, acted)) == self.model.act(
                list(zip(ids, planned, strict=True))
            )
            assert list(map(plain_claimed, claimed)) == self.model.claim(wanted)
            given = [answer for answer in claimed if isinstance(answer, Claimed)]
            self.leases += [m for answer in given for m, _ in answer.messages]

        return check

    def look(self, session: Session) -> dict[int, tuple[Any, list[Message]]]:
        seen = {}
        for queue in self.queues:
            no = queue.queue_no
            pages = [
                session.messages.browse(Browse(queue_no=no, state=state, limit=MANY))
                for state in STATES
            ]
            seen[no] = (session.queues.counts([no])[no], [m for page in pages for m in page])
        return seen

    def look_back(self, session: Session) -> tuple[dict[int, list[End]], dict[str, list[Attempt]]]:
        ends = {}
        for queue in self.queues:
            endings = session.history.search(HistoryFilter(queue=queue.name, limit=MANY))
            ends[queue.queue_no] = [
                End(*(getattr(e, name) for name in End._fields)) for e in endings
            ]
        attempts = {
            message_id: [replace(a, message_no=0) for a in session.history.attempts(message_id)]
            for message_id in self.sent_ids
        }
        return ends, attempts

    def keep(self, queue: int, change: Callable[[Session], Queue]) -> None:
        self.queues[queue] = self.write(change)
        self.model.keep(self.queues[queue], now=self.now)

    def add_queue(self, name: str, settings: QueueSettings) -> Queue:
        made: Queue = self.write(lambda s: s.queues.add(name, settings, now=self.now))
        return made

    def home_of(self, message: Message) -> Queue:
        return self.model.queues[message.dead_from or message.queue_no]

    def write(self, what: Callable[[Session], Any]) -> Any:
        return self.store.write(what).result(WAIT_S)


def refusal_of(do: Callable[[], object]) -> type[PenstockError] | None:
    try:
        do()
    except PenstockError as refusal:
        return type(refusal)
    return None


def answer_of(ticket: Ticket[Claimed]) -> Claimed | PenstockError:
    try:
        return ticket.result(WAIT_S)
    except PenstockError as refusal:
        return refusal


def one(answers: list[Any]) -> Any:
    [answer] = answers
    return answer
