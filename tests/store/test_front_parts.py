"""Which parts of an index claims read when the rest leads to dead rows.

The model knows which messages are ready and visible; a message of the store's own transactions must
always be in a part, one of another node's after the next full look.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.store.dead_rows.front_parts import EVERYTHING, MAX_POINTS, FrontParts, Part, Place

VISIBLE = 5  # places per look


def is_in(place: Place, part: Part) -> bool:
    begin, last_priority = part
    if last_priority is None:
        return place == begin
    return begin <= place and place[0] <= last_priority


class DeadRowsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.front = FrontParts()
        self.number = 0
        self.ready: set[Place] = set()
        self.foreign: set[Place] = set()  # not found by a full look yet
        self.claimed: list[Place] = []
        self.open_sends: list[Place] = []  # announced, not committed

    def next_place(self, priority: int) -> Place:
        self.number += 1
        return (priority, 0, self.number)

    def seen(self) -> list[Place]:
        parts = self.front.parts
        return sorted(p for p in self.ready if any(is_in(p, part) for part in parts))

    @rule(priority=st.integers(-1, 1), count=st.integers(1, 4))
    def send(self, priority: int, count: int) -> None:
        for _ in range(count):
            place = self.next_place(priority)
            self.front.add(place)
            self.ready.add(place)

    @rule(priority=st.integers(-1, 1))
    def begin_send(self, priority: int) -> None:
        place = self.next_place(priority)
        self.front.add(place)
        self.open_sends.append(place)

    @rule()
    def commit_sends(self) -> None:
        self.ready |= set(self.open_sends)
        self.open_sends = []

    @rule(count=st.integers(1, 6))
    def claim(self, count: int) -> None:
        taken = self.seen()[:count]
        self.ready -= set(taken)
        self.foreign -= set(taken)
        self.front.claimed(taken)
        self.claimed += taken

    @rule(data=st.data())
    def put_back(self, data: st.DataObject) -> None:
        if self.claimed:
            place = data.draw(st.sampled_from(self.claimed))
            self.claimed.remove(place)
            self.front.add(place)
            self.ready.add(place)

    @rule(data=st.data())
    def put_back_by_another_node(self, data: st.DataObject) -> None:
        if self.claimed:
            place = data.draw(st.sampled_from(self.claimed))
            self.claimed.remove(place)
            self.ready.add(place)
            self.foreign.add(place)

    @rule()
    def look(self) -> None:
        visible = self.seen()[:VISIBLE]
        self.front.looked(visible, is_cut=len(visible) == VISIBLE, is_full=False)

    @rule()
    def look_at_everything(self) -> None:
        visible = sorted(self.ready)[:VISIBLE]
        self.front.looked(visible, is_cut=len(visible) == VISIBLE, is_full=True)
        self.foreign = set()

    @invariant()
    def every_message_of_this_node_is_in_a_part(self) -> None:
        assert self.ready - self.foreign <= set(self.seen())

    @invariant()
    def parts_are_in_the_order_of_claims(self) -> None:
        assert [begin for begin, _ in self.front.parts] == sorted(
            begin for begin, _ in self.front.parts
        )
        for place in self.ready:
            assert sum(is_in(place, part) for part in self.front.parts) <= 1


TestDeadRows = DeadRowsMachine.TestCase
TestDeadRows.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)


def claimed_up_to(number: int, *, looks: int = 4) -> FrontParts:
    front = FrontParts()
    front.claimed([(0, 0, n) for n in range(1, number + 1)])
    for _ in range(looks):
        front.looked([], is_cut=False, is_full=False)
    return front


def test_what_was_claimed_is_skipped_after_some_looks():
    front = claimed_up_to(1000)

    assert not any(is_in((0, 0, 999), part) for part in front.parts)
    assert any(is_in((0, 0, 1001), part) for part in front.parts)
    assert any(is_in((1, 0, 1), part) for part in front.parts)
    assert any(is_in((-1, 0, 1), part) for part in front.parts)


def test_at_first_everything_is_read():
    assert claimed_up_to(1000, looks=2).parts[-1][0] == EVERYTHING[0][0]


def test_a_message_put_back_by_another_node_stays_known_behind_a_look_that_was_cut():
    front = claimed_up_to(1000)
    front.looked([(0, 0, 999)], is_cut=False, is_full=True)

    front.looked([(-1, 0, n) for n in range(VISIBLE)], is_cut=True, is_full=False)

    assert any(is_in((0, 0, 999), part) for part in front.parts)


def test_with_too_many_points_everything_behind_the_first_is_read():
    front = claimed_up_to(1000)

    for number in range(100, 101 + MAX_POINTS):
        front.add((0, 0, number))

    assert len(front.parts) == 2
    assert all(any(is_in((0, 0, n), part) for part in front.parts) for n in range(100, 302))
