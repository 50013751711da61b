"""Limits per group: lets as many messages of each group through as it may have.

The rule is in domain/queue/group_limit.py.  Called whenever a message came into a limited group or
left it, was claimed, or went back to wait; it reads all it needs from the messages themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from penstock.domain.errors import QueueNotFound
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.queue import group_limit as opening
from penstock.domain.queue import rate as pace
from penstock.domain.queue.group_limit import MAX_ADMITTED
from penstock.domain.queue.queue import QueueSettings
from penstock.domain.queue.rate import Bucket, Rate
from penstock.store.limits.rates import Paces
from penstock.store.verbs.transaction_state import Books, json_list

Group = tuple[int, str]

_CHUNK = 500  # groups at once
_NO_BUCKET = Bucket(0, 0)


class Room(msgspec.Struct, frozen=True):
    """What a group has left of its limits."""

    count: int
    unclaimed: int
    rate: Rate | None
    bucket: Bucket

    def instants(self, count: int, *, now: int) -> Iterator[int]:
        """When each of so many can be claimed."""
        return opening.instants(
            self.rate, self.bucket, unclaimed=self.unclaimed, count=count, now=now
        )


class Openings:
    def __init__(self, books: Books) -> None:
        self._books = books
        self._paces = Paces(books)
        self._db = books.db

    def open(self, groups: Iterable[Group], *, now: int) -> None:
        """Let through whoever has room, group by group."""
        limited = sorted((no, group) for no, group in groups if self._limits(no) is not None)
        self._books.need_lines({no for no, _ in limited})
        for start in range(0, len(limited), _CHUNK):
            self._open(limited[start : start + _CHUNK], now=now)

    def charge(self, queue_no: int, claimed: Sequence[Message], *, now: int) -> None:
        """Claims pay for their groups; whoever comes next knows then when it can be claimed."""
        rate = self._books.queue(queue_no).settings.rate_per_group
        taken = Counter((queue_no, m.group) for m in claimed if m.group is not None)
        if rate is None or not taken:
            return
        buckets = self._paces.find(dict.fromkeys(taken, rate), now=now)
        self._paces.keep(
            (group, rate, pace.spend(buckets[group], rate, count, now=now))
            for group, count in sorted(taken.items())
        )
        self.open(taken, now=now)

    def judge_anew(self, queue_no: int, *, now: int) -> None:
        """The queue has got other limits: whom they let through is decided from the beginning."""
        params = {"queue_no": queue_no}
        recalled = self._db.run("openings.recall", params | {"now": now})
        count = self._books.count(queue_no)
        count.waiting -= recalled
        count.ready += recalled
        if self._limits(queue_no) is None:
            self._db.post("openings.free_all", params)
            return
        self._db.post("openings.shut_all", params)
        groups = self._db.rows("openings.held_groups", params)
        self.open(((queue_no, group) for (group,) in groups), now=now)

    def rooms(self, groups: list[Group], *, now: int) -> dict[Group, Room]:
        """How many of each of these groups may be let through now, or at what instants."""
        asked = self._db.ask("openings.open_ones", {"groups": json_list(groups)})
        buckets = self._paces.find(self._rates(groups), now=now)
        leased: Counter[Group] = Counter()
        unclaimed: Counter[Group] = Counter()
        for no, group, state, number in asked.rows():
            (leased if state == State.LEASED else unclaimed)[no, group] += int(number)
        found = {}
        for pair in groups:
            limits = self._settings(pair[0])
            room = opening.room(
                max_leased=limits.max_leased_per_group,
                rate=limits.rate_per_group,
                leased=leased[pair],
                unclaimed=unclaimed[pair],
                most=MAX_ADMITTED,
            )
            bucket = buckets.get(pair, _NO_BUCKET)
            found[pair] = Room(room, unclaimed[pair], limits.rate_per_group, bucket)
        return found

    def _open(self, groups: list[Group], *, now: int) -> None:
        asked = []
        for (no, group), room in self.rooms(groups, now=now).items():
            if room.count:
                line = {"queue_no": no, "group_key": group, "limit": room.count}
                asked.append((no, room, self._db.ask("openings.next_ones", line)))
        saves: list[dict[str, Any]] = []
        for no, room, answer in asked:
            following = [message_no for (message_no,) in answer.rows()]
            saves += self._let_through(no, following, room.instants(len(following), now=now), now)
        if saves:
            self._db.update("openings.let_through", saves)

    def _let_through(
        self, queue_no: int, nos: list[int], instants: Iterable[int], now: int
    ) -> Iterable[dict[str, Any]]:
        count = self._books.count(queue_no)
        for message_no, instant in zip(nos, instants, strict=True):
            if instant <= now:
                self._books.wake(queue_no)
                yield _saved(message_no, State.READY, None)
            else:
                count.ready -= 1
                count.waiting += 1
                self._books.wake(queue_no, 0)
                yield _saved(message_no, State.WAITING, instant)

    def _rates(self, groups: list[Group]) -> dict[Group, Rate]:
        rates = {pair: self._settings(pair[0]).rate_per_group for pair in groups}
        return {pair: rate for pair, rate in rates.items() if rate is not None}

    def _settings(self, queue_no: int) -> QueueSettings:
        return self._books.queue(queue_no).settings

    def _limits(self, queue_no: int) -> QueueSettings | None:
        """None: it does not limit its groups, or is gone."""
        try:
            settings = self._settings(queue_no)
        except QueueNotFound:
            return None
        return settings if settings.limits_groups else None


def _saved(message_no: int, state: State, due_at: int | None) -> dict[str, Any]:
    return {"message_no": message_no, "state": state.value, "due_at": due_at}
