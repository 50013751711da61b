"""The one order in which locks are taken where several nodes write, for steps over many messages.

    the day's tables → the list of queues → claim keys → lines (of queues with limits or fair share)
    → groups → dedup keys → messages → buckets, shares → counters

Whoever waits for a lock holds none that comes later, and of the same kind takes all at once and
sorted: so nobody waits crosswise.  A step does not know the groups of its messages beforehand.  It
looks without locks, locks the groups of what it saw, then the messages, and works on those that are
still as they were.  Of messages it waits for one at most, and then it holds no other.

What never waits may take them in any order: claims, and what brings back or expires.  They wait for
the line of their queue only, and before anything else.  And so may whoever gives back a dedup key
without an end: nobody else locks it (store/verbs/dedup_claims.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.domain.errors import MessageNotFound
from penstock.domain.limits import DAY
from penstock.domain.message.lifecycle import Message, State
from penstock.store.database import Overtaken
from penstock.store.verbs.transaction_state import Books, json_list, message_of

Pick = Callable[[str], list[Message]]  # given how to lock what it finds
Group = tuple[int, str]

NO_LOCK = ""


class Holds:
    def __init__(self, books: Books) -> None:
        self._books = books
        self._db = books.db
        self._to_special: set[int] = set()  # whose dead came out of ordered or steered queues

    def begin(self, queue_nos: set[int], *, now: int) -> None:
        """What everybody locks before anything else."""
        if self._db.is_shared:
            self._look(queue_nos, now=now)
            self._books.lock_lines(queue_nos)

    def _look(self, queue_nos: set[int], *, now: int) -> None:
        self._books.partitions.ensure(now // DAY)
        self._books.load_queues(queue_nos)

    def all_of(self, queue_no: int, pick: Pick, *, now: int) -> list[Message]:
        """Messages that end in their queue.  None only if there is none."""
        if not self._db.is_shared:
            return pick(NO_LOCK)
        self.begin({queue_no}, now=now)
        if self._books.ordered_of({queue_no}):
            return self._hold(pick(NO_LOCK), to=queue_no)
        return pick(self._free_ones) or self._hold(pick(NO_LOCK)[:1], to=queue_no)

    def to_bring(self, queue_no: int, pick: Pick, *, to: int | None, now: int) -> list[Message]:
        """Messages that go to another queue, or home; groups there are locked, too."""
        if not self._db.is_shared:
            return pick(NO_LOCK)
        if to is None:
            return self._to_bring_home(queue_no, pick, now=now)
        ends = {queue_no, to}
        self.begin(ends, now=now)
        if self._books.ordered_of(ends):
            return self._hold(pick(NO_LOCK), to=to)
        return pick(self._free_ones)

    def _to_bring_home(self, queue_no: int, pick: Pick, *, now: int) -> list[Message]:
        """Where they go is known only when they were seen; lines are locked all at once."""
        self._look({queue_no}, now=now)
        is_special = self._books.ordered_of({queue_no}) or queue_no in self._books.steered
        if is_special or queue_no in self._to_special:
            return self._hold(pick(NO_LOCK), to=None)
        found = pick(self._free_ones)
        homes = {m.dead_from or m.queue_no for m in found}
        if self._groups(found, to=None) or self._books.steered_of(homes):
            # Only now it shows.  The messages are locked already: once more, in the right order.
            self._to_special.add(queue_no)
            raise Overtaken("messages go home to a queue where that matters to others")
        return found

    def one(self, message_id: str, *, now: int) -> Message:
        """A message to be changed by hand: cancelled, rescheduled, buried or sent home."""
        seen = self._look_at(message_id, now=now) if self._db.is_shared else None
        rows = self._db.rows("messages.by_id_to_change", {"id": message_id})
        if not rows:
            raise MessageNotFound(message_id)
        found = message_of(rows[0])
        if seen is not None and _where(found) != _where(seen):
            raise Overtaken("the message has moved meanwhile")
        return found

    def wanted_for(self, message_id: str, *, now: int) -> tuple[set[int], set[Group]]:
        """The lines and groups that `one` locks, for whoever locks others before it."""
        rows = self._db.rows("messages.by_id", {"id": message_id}) if self._db.is_shared else []
        return self._wanted_for(message_of(rows[0]), now=now) if rows else (set(), set())

    def free_to_die(self, queue_no: int, messages: list[Message]) -> list[Message]:
        """Without those that might come into a group of dead letters that somebody changes.

        They are locked already, so nothing is waited for; the next sweep finds them again.
        """
        if not self._db.is_shared:
            return messages
        if not self._are_letters_free(queue_no, messages):
            messages = [m for m in messages if m.state is not State.LEASED]
        leased = [m for m in messages if m.state is State.LEASED and m.group is not None]
        wanted = self._letters(leased)
        if not wanted:
            return messages
        busy = {group for _, group in wanted - self._books.try_groups(wanted)}
        return [m for m in messages if m.state is not State.LEASED or m.group not in busy]

    def _are_letters_free(self, queue_no: int, messages: list[Message]) -> bool:
        """Whether the line that they come into if they die, if there is such a line, is ours."""
        if not any(m.state is State.LEASED for m in messages):
            return True
        letters = self._books.dead_letter_queue_of(self._books.queue(queue_no))
        return letters is None or self._books.try_line(letters.queue_no)

    @property
    def _free_ones(self) -> str:
        return self._db.text("messages.free_ones")

    def _look_at(self, message_id: str, *, now: int) -> Message:
        rows = self._db.rows("messages.by_id", {"id": message_id})
        if not rows:
            raise MessageNotFound(message_id)
        seen = message_of(rows[0])
        lines, groups = self._wanted_for(seen, now=now)
        self._books.lock_lines(lines)
        self._books.lock_groups(groups)
        return seen

    def _wanted_for(self, seen: Message, *, now: int) -> tuple[set[int], set[Group]]:
        ends = {seen.queue_no, seen.dead_from or seen.queue_no}
        self._look(ends, now=now)
        groups = self._groups([seen], to=None) | self._letters([seen])
        return ends | self._books.letters_of({seen.queue_no}), groups

    def _hold(self, seen: Sequence[Message], *, to: int | None) -> list[Message]:
        if not seen:
            return []
        groups = self._groups(seen, to=to)
        if to is None:
            ends = {no for m in seen for no in (m.queue_no, m.dead_from or m.queue_no)}
            self._books.load_queues(ends)
            self._books.lock_lines(ends)
        self._books.lock_groups(groups)
        nos = [m.message_no for m in seen]
        rows = self._db.rows("messages.free_by_no", {"message_nos": json_list(nos)})
        if not rows:  # somebody is at work on all of them
            rows = self._db.rows("messages.by_no", {"message_nos": json_list(nos[:1])})
        held = {m.message_no: m for m in map(message_of, rows)}
        still = [m for m in seen if held.get(m.message_no) == m]
        if not still:
            raise Overtaken("others have changed these messages meanwhile")
        return still

    def _groups(self, messages: Sequence[Message], *, to: int | None) -> set[Group]:
        """The groups that they leave or come into, of queues ordered by group."""
        pairs = {
            (no, m.group)
            for m in messages
            if m.group is not None
            for no in (m.queue_no, to or m.dead_from or m.queue_no)
        }
        ordered = self._books.ordered_of({no for no, _ in pairs})
        return {(no, group) for no, group in pairs if no in ordered}

    def _letters(self, messages: Sequence[Message]) -> set[Group]:
        """The groups that they come into if they die."""
        pairs = {(m.queue_no, m.group) for m in messages if m.group is not None}
        letters = self._books.ordered_letters_of({no for no, _ in pairs})
        return {(letters[no], group) for no, group in pairs if no in letters}


def _where(message: Message) -> tuple[int, int | None]:
    return message.queue_no, message.dead_from
