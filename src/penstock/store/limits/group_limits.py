"""Limits per group: admits as many messages of each group as its limits allow.

The rule is in domain/queue/group_limit.py.  Called whenever a message enters or leaves a limited
group, is claimed or returned; it reads all it needs from the messages themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from penstock.domain.chunks import chunks
from penstock.domain.errors import QueueNotFound
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.queue import group_limit
from penstock.domain.queue import rate as token_bucket
from penstock.domain.queue.group_limit import MAX_ADMITTED
from penstock.domain.queue.queue import QueueSettings
from penstock.domain.queue.rate import Bucket, Rate
from penstock.store.limits.rates import RateBuckets
from penstock.store.verbs.transaction_state import TransactionState, json_list

Group = tuple[int, str]

_CHUNK = 500  # groups per statement
_NO_BUCKET = Bucket(0, 0)


class Room(msgspec.Struct, frozen=True):
    """What is left of a group's limits."""

    count: int
    unclaimed: int
    rate: Rate | None
    bucket: Bucket

    def instants(self, count: int, *, now: int) -> Iterator[int]:
        """When each of the next `count` messages can be claimed."""
        return group_limit.instants(
            self.rate, self.bucket, unclaimed=self.unclaimed, count=count, now=now
        )


class GroupLimits:
    def __init__(self, transaction: TransactionState) -> None:
        self._transaction = transaction
        self._rate_buckets = RateBuckets(transaction)
        self._db = transaction.db

    def admit(self, groups: Iterable[Group], *, now: int) -> None:
        """Admit the next messages of these groups, as far as their limits allow."""
        limited = sorted((no, group) for no, group in groups if self._limits(no) is not None)
        self._transaction.require_queue_locks({no for no, _ in limited})
        for chunk in chunks(limited, _CHUNK):
            self._admit_chunk(chunk, now=now)

    def charge(self, queue_no: int, claimed: Sequence[Message], *, now: int) -> None:
        """Charge claimed messages to the rates of their groups, and admit the next ones."""
        rate = self._transaction.queue(queue_no).settings.rate_per_group
        taken = Counter((queue_no, m.group) for m in claimed if m.group is not None)
        if rate is None or not taken:
            return
        buckets = self._rate_buckets.find(dict.fromkeys(taken, rate), now=now)
        self._rate_buckets.save(
            (group, rate, token_bucket.spend(buckets[group], rate, count, now=now))
            for group, count in sorted(taken.items())
        )
        self.admit(taken, now=now)

    def reapply(self, queue_no: int, *, now: int) -> None:
        """The queue's limits have changed: decide again which messages are admitted."""
        params = {"queue_no": queue_no}
        recalled = self._db.run("group_limits.recall", params | {"now": now})
        count = self._transaction.count(queue_no)
        count.waiting -= recalled
        count.ready += recalled
        if self._limits(queue_no) is None:
            self._db.post("group_limits.free_all", params)
            return
        self._db.post("group_limits.hold_back_all", params)
        groups = self._db.rows("group_limits.groups_held_back", params)
        self.admit(((queue_no, group) for (group,) in groups), now=now)

    def rooms(self, groups: Sequence[Group], *, now: int) -> dict[Group, Room]:
        """What each of these groups has left of its limits."""
        asked = self._db.ask("group_limits.admitted", {"groups": json_list(groups)})
        buckets = self._rate_buckets.find(self._rates(groups), now=now)
        leased: Counter[Group] = Counter()
        unclaimed: Counter[Group] = Counter()
        for no, group, state, number in asked.rows():
            (leased if state == State.LEASED else unclaimed)[no, group] += int(number)
        found = {}
        for pair in groups:
            limits = self._settings(pair[0])
            room = group_limit.room(
                max_leased=limits.max_leased_per_group,
                rate=limits.rate_per_group,
                leased=leased[pair],
                unclaimed=unclaimed[pair],
                most=MAX_ADMITTED,
            )
            bucket = buckets.get(pair, _NO_BUCKET)
            found[pair] = Room(room, unclaimed[pair], limits.rate_per_group, bucket)
        return found

    def _admit_chunk(self, groups: Sequence[Group], *, now: int) -> None:
        asked = []
        for (no, group), room in self.rooms(groups, now=now).items():
            if room.count:
                params = {"queue_no": no, "group_key": group, "limit": room.count}
                asked.append((no, room, self._db.ask("group_limits.next_held_back", params)))
        saves: list[dict[str, Any]] = []
        for no, room, answer in asked:
            following = [message_no for (message_no,) in answer.rows()]
            saves += self._admit_messages(
                no, following, room.instants(len(following), now=now), now
            )
        if saves:
            self._db.update("group_limits.admit", saves)

    def _admit_messages(
        self, queue_no: int, nos: list[int], instants: Iterable[int], now: int
    ) -> Iterable[dict[str, Any]]:
        count = self._transaction.count(queue_no)
        for message_no, instant in zip(nos, instants, strict=True):
            if instant <= now:
                self._transaction.wake(queue_no)
                yield _params_of(message_no, State.READY, None)
            else:
                count.ready -= 1
                count.waiting += 1
                self._transaction.wake(queue_no, 0)
                yield _params_of(message_no, State.WAITING, instant)

    def _rates(self, groups: Sequence[Group]) -> dict[Group, Rate]:
        rates = {pair: self._settings(pair[0]).rate_per_group for pair in groups}
        return {pair: rate for pair, rate in rates.items() if rate is not None}

    def _settings(self, queue_no: int) -> QueueSettings:
        return self._transaction.queue(queue_no).settings

    def _limits(self, queue_no: int) -> QueueSettings | None:
        """None: the queue does not limit its groups, or was removed."""
        try:
            settings = self._settings(queue_no)
        except QueueNotFound:
            return None
        return settings if settings.limits_groups else None


def _params_of(message_no: int, state: State, due_at: int | None) -> dict[str, Any]:
    return {"message_no": message_no, "state": state.value, "due_at": due_at}
