"""Limits and fair share in the model: rules over all messages, with the functions of the domain."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from penstock.domain.message.lifecycle import LIVE, Message, State
from penstock.domain.queue import fair_share, group_limit
from penstock.domain.queue import rate as pace
from penstock.domain.queue.group_limit import ADMITTED, HELD_BACK, NO_GATE
from penstock.domain.queue.queue import Queue
from penstock.domain.queue.rate import Bucket, Rate

ALL = 1_000_000


class LimitsModel:
    """The part of the model that knows which messages may be claimed when."""

    def __init__(self) -> None:
        self.queues: dict[int, Queue] = {}
        self.messages: dict[str, Message] = {}
        self._passed: dict[tuple[int, int], int] = {}
        self._finish: dict[tuple[int, int, str], int] = {}
        self._buckets: dict[tuple[int, str], Bucket] = {}

    def of(self, queue_no: int, states: Iterable[State]) -> list[Message]:
        """The messages of a queue in these states, by their place."""
        found = [m for m in self.messages.values() if m.queue_no == queue_no and m.state in states]
        return sorted(found, key=lambda m: m.order_no)

    def with_position(self, m: Message) -> Message:
        """With the position that it gets in a fair queue."""
        settings = self.queues[m.queue_no].settings
        if not settings.is_fair:
            return m
        place = (m.queue_no, m.priority, m.group or "")
        passed = self._passed.get((m.queue_no, m.priority), 0)
        position = fair_share.next_position(passed, self._finish.get(place, 0))
        weight = fair_share.weight_of(m.group, settings.weights)
        self._finish[place] = fair_share.finish(position, weight)
        return replace(m, fair_position=position)

    def with_gate(self, before: Message, after: Message, *, now: int) -> Message:
        """Held back at first in a limited group, unless this was its instant."""
        is_limited = self.queues[after.queue_no].settings.limits_groups
        if after.group is None or after.state not in LIVE or not is_limited:
            return replace(after, gate=NO_GATE)
        fell_due = (
            before.state is State.WAITING and before.gate == ADMITTED and before.due_at <= now
        )
        is_open = after.state is State.LEASED or (fell_due and after.state is State.READY)
        return replace(after, gate=ADMITTED if is_open else HELD_BACK)

    def admit(self, *, now: int) -> None:
        for queue in self.queues.values():
            if queue.settings.limits_groups:
                live = self.of(queue.queue_no, LIVE)
                for group in sorted({m.group for m in live if m.group is not None}):
                    self._open(queue, [m for m in live if m.group == group], now=now)

    def allowed(self, queue: Queue, wanted: int, *, now: int) -> int:
        settings = queue.settings
        if settings.rate is not None:
            bucket = self._bucket(queue, None, now=now)
            wanted = min(wanted, pace.available(bucket, settings.rate, now=now))
        if settings.max_leased is not None:
            wanted = min(wanted, settings.max_leased - len(self.of(queue.queue_no, [State.LEASED])))
        return max(0, wanted)

    def record_claim(
        self, queue: Queue, claimed: list[Message], *, is_short: bool, now: int
    ) -> None:
        no, settings = queue.queue_no, queue.settings
        if settings.rate is not None:
            self._spend(queue, None, settings.rate, len(claimed), now=now)
        for m in claimed:
            if settings.rate_per_group is not None and m.group is not None:
                self._spend(queue, m.group, settings.rate_per_group, 1, now=now)
            if settings.is_fair:
                line = (no, m.priority)
                self._passed[line] = max(m.fair_position, self._passed.get(line, 0))
        # A message that waits for its group's rate has no position.
        self.admit(now=now)
        if settings.is_fair and is_short and not self.of(no, [State.READY]):
            for place in [place for place in self._finish if place[0] == no]:
                line = place[:2]
                self._passed[line] = max(self._finish.pop(place), self._passed.get(line, 0))

    def allowed_at(self, queue: Queue, *, now: int) -> int | None:
        rate = queue.settings.rate
        if rate is None:
            return None
        at = pace.available_at(self._bucket(queue, None, now=now), rate, 1, now=now)
        return at if at > now else None

    def apply_settings(self, old: Queue | None, new: Queue, *, now: int) -> None:
        """The settings of a queue have changed."""
        if old is None:
            return
        no, was, became = new.queue_no, old.settings, new.settings
        if was.rate != became.rate:
            self._buckets.pop((no, ""), None)
        if was.rate_per_group != became.rate_per_group:
            mine = [key for key in self._buckets if key[0] == no and key[1]]
            self._buckets = {k: b for k, b in self._buckets.items() if k not in mine}
        if was.is_fair != became.is_fair:
            self._assign_positions(new)
        limits = ("max_leased_per_group", "rate_per_group")
        if any(getattr(was, name) != getattr(became, name) for name in limits):
            for m in self.of(no, LIVE):
                if m.state is State.WAITING and m.gate == ADMITTED:
                    m = replace(m, state=State.READY, due_at=now)
                self.messages[m.id] = self.with_gate(replace(m, gate=NO_GATE), m, now=now)

    def _assign_positions(self, queue: Queue) -> None:
        no = queue.queue_no
        self._finish = {k: position for k, position in self._finish.items() if k[0] != no}
        self._passed = {k: position for k, position in self._passed.items() if k[0] != no}
        for m in self.of(no, State):
            has_place = m.first_leased_at is not None or m.gate == ADMITTED or queue.is_ordered
            joins = m.state in LIVE and (m.state is not State.WAITING or has_place)
            m = replace(m, fair_position=0)
            self.messages[m.id] = self.with_position(m) if joins else m

    def _open(self, queue: Queue, group: list[Message], *, now: int) -> None:
        settings = queue.settings
        rate = settings.rate_per_group
        is_open = [m for m in group if m.gate == ADMITTED]
        leased = sum(m.state is State.LEASED for m in is_open)
        unclaimed = len(is_open) - leased
        room = group_limit.room(
            max_leased=settings.max_leased_per_group,
            rate=rate,
            leased=leased,
            unclaimed=unclaimed,
            most=ALL,
        )
        held = [m for m in group if m.gate == HELD_BACK and m.state is State.READY]
        held = sorted(held, key=lambda m: (m.priority, m.fair_position, m.order_no))[:room]
        bucket = self._bucket(queue, group[0].group, now=now)
        at = group_limit.instants(rate, bucket, unclaimed=unclaimed, count=len(held), now=now)
        for m, instant in zip(held, at, strict=True):
            if instant > now:
                m = replace(m, state=State.WAITING, due_at=instant)
            self.messages[m.id] = replace(m, gate=ADMITTED)

    def _bucket(self, queue: Queue, group: str | None, *, now: int) -> Bucket:
        rate = queue.settings.rate if group is None else queue.settings.rate_per_group
        full = Bucket(0, 0) if rate is None else pace.full(rate, now=now)
        return self._buckets.get((queue.queue_no, group or ""), full)

    def _spend(self, queue: Queue, group: str | None, rate: Rate, count: int, *, now: int) -> None:
        bucket = self._bucket(queue, group, now=now)
        key = (queue.queue_no, group or "")
        if count:
            self._buckets[key] = pace.spend(bucket, rate, count, now=now)
