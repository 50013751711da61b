"""Checks of every store: its schema, clock mark, counters, limits, and held queues."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator

from penstock.domain.errors import StoreRefused
from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.message.lifecycle import State
from penstock.domain.queue import group_limit
from penstock.domain.queue.group_limit import ADMITTED, HELD_BACK, MAX_ADMITTED
from penstock.domain.queue.queue import Counts, Queue
from penstock.domain.store.finding import Finding, fail, ok, warn
from penstock.domain.store.store_time import difference_text, instant_text
from penstock.store.commit.session import SqlSession
from penstock.store.database import Row
from penstock.store.maintenance import migrate as migrations
from penstock.store.maintenance.clock_mark import read_mark
from penstock.store.maintenance.space import examine_days, examine_queues

_PAGE = 1_000
_STATES = ("waiting", "ready", "leased", "dead")
_LEASED = "leased"
_UNCLAIMED = "unclaimed"
_HELD = "held back"


def examine_content(
    session: SqlSession,
    now: Callable[[], int],
    *more: Callable[[SqlSession], Iterator[Finding]],
    space: bool = False,
) -> Iterator[Finding]:
    """Check the tables, if the schema is as this version needs it; `more`: further checks.

    `space`: also by queue, which reads all messages and their history.
    """
    schema = _examine_schema(session)
    yield schema
    if schema.grade == "ok":
        yield _examine_clock(session, now=now())
        for examine in (_examine_counters, _examine_limits, _examine_holds, _examine_flows, *more):
            yield from examine(session)
        yield from examine_days(session)
        if space:
            yield from examine_queues(session)


def _examine_schema(session: SqlSession) -> Finding:
    try:
        todo = session.read(lambda s: migrations.pending(s.db))
    except StoreRefused as error:
        return fail("schema", str(error))
    if todo:
        names = ", ".join(f"{m.number:04}_{m.name}" for m in todo)
        return fail("schema", f"lacks {names}; run: penstock migrate --store URL")
    latest = migrations.shipped(session.db.dialect)[-1]
    return ok("schema", f"up to date ({latest.number:04}_{latest.name})")


def _examine_clock(session: SqlSession, *, now: int) -> Finding:
    """Compare the latest instant that the store has seen with the clock that it should use."""
    mark = session.read(read_mark)
    if not mark:
        return ok("clock", "nothing has been written yet")
    times = f"the store's time is {instant_text(mark)}, the clock's {instant_text(now)}"
    if mark - now <= SECOND:
        return ok("clock", f"{times}: the store is not ahead")
    text = f"{times}: the store is {difference_text(mark - now)} ahead"
    if mark - now <= MINUTE:
        return ok("clock", text)
    advice = "stop all processes that use the store and run penstock doctor --repair-clock"
    return warn("clock", f"{text}; if the clock is right, {advice}")


def _examine_counters(session: SqlSession) -> Iterator[Finding]:
    """Check that the counters add up and agree with the messages that are there."""
    wrong, number = session.read(_wrong_counters)
    yield from (fail("books", text) for text in wrong)
    if not wrong:
        yield ok("books", f"the counters of {number} queues agree with their messages")


def _examine_flows(session: SqlSession) -> Iterator[Finding]:
    """Each member that was sent must be in a queue until it has ended."""
    lost = session.read(lost_members)
    for flow_id, name, count in lost:
        advice = f"penstock flows cancel {flow_id}"
        yield warn("flows", f"flow {flow_id} ({name}): {count} messages are missing; {advice}")
    wrong = session.read(lambda s: s.db.rows("flows.miscounted"))
    for (flow_id,) in wrong:
        yield fail("flows", f"flow {flow_id}: its numbers do not agree with its members")
    if not lost and not wrong:
        yield ok("flows", "the members of all flows are there")


def lost_members(session: SqlSession) -> list[Row]:
    """Flows by id and name, with the number of their messages that are missing."""
    return session.db.rows("flows.lost_members")


def _examine_holds(session: SqlSession) -> Iterator[Finding]:
    """Each held queue must have a reason that will end the hold."""
    rows = session.read(lambda s: s.db.rows("circuits.held_reasons"))
    for held_by, pattern, state, awaits_release, is_known, count, name in rows:
        queues = f"queue {name!r} is" if count == 1 else f"{count} queues, such as {name!r}, are"
        circuit = f"circuit {held_by}" if pattern is None else f"circuit {held_by} ({pattern})"
        if awaits_release:
            yield warn("holds", f"{queues} waiting to be unheld: {circuit} is closed or removed")
        elif is_known and state is not None:
            yield warn("holds", f"{queues} held: {circuit} is {state.replace('_', '-')}")
        else:
            yield fail(
                "holds",
                f"{queues} held by {circuit}, and nothing will end that; "
                f"run `penstock queues unhold {name}`",
            )
    if not rows:
        yield ok("holds", "no queue is held by a circuit")


def _wrong_counters(session: SqlSession) -> tuple[list[str], int]:
    session.db.raise_time_limits()
    real: dict[int, Counts] = {}
    for queue_no, state, count in session.db.rows("checks.in_states"):
        setattr(real.setdefault(queue_no, Counts()), state, int(count))
    wrong: list[str] = []
    number = 0
    for page in _pages(session):
        counted = session.queues.counts([queue.queue_no for queue in page])
        for queue in page:
            wrong += _wrong(queue.name, counted[queue.queue_no], real.get(queue.queue_no, Counts()))
        number += len(page)
    return wrong, number


def _wrong(name: str, counted: Counts, real: Counts) -> Iterator[str]:
    if not counted.is_balanced:
        yield f"{name}: sent does not equal live plus ended messages"
    for state in _STATES:
        count, there = getattr(counted, state), getattr(real, state)
        if count != there:
            yield f"{name}: the counter of {state} messages is {count}, but there are {there}"


def _examine_limits(session: SqlSession) -> Iterator[Finding]:
    wrong = session.read(wrong_limits)
    yield from (fail("limits", text) for text in wrong)
    if not wrong:
        yield ok("limits", "no message waits for a limit that is not reached")


def wrong_limits(session: SqlSession) -> list[str]:
    """Describes each violation; only for the doctor, as it reads all messages of groups."""
    queues = {queue.queue_no: queue for page in _pages(session) for queue in page}
    gated: dict[tuple[int, str], Counter[str]] = defaultdict(Counter)
    wrong: list[str] = []
    for no, group, gate, state, is_blocked, number in session.db.rows("group_limits.all_groups"):
        if (gate == HELD_BACK) != bool(is_blocked):
            wrong.append(f"queue {no}, group {group!r}: gate {gate}, but is_blocked {is_blocked}")
        gated[no, group][_kind(gate, state)] += int(number)
    for (no, group), numbers in sorted(gated.items()):
        wrong += _wrong_group(queues.get(no), group, numbers)
    for (no,) in session.db.rows("group_limits.ungated"):
        if no in queues and queues[no].settings.limits_groups:
            wrong.append(f"{queues[no].name}: messages of groups to which no limit was applied")
    for no, group in session.db.rows("group_limits.stuck"):
        if no in queues:
            wrong.append(
                f"{queues[no].name}, group {group!r}: all messages are blocked, none is first"
            )
    return wrong


def _wrong_group(queue: Queue | None, group: str, numbers: Counter[str]) -> Iterator[str]:
    if queue is None:
        return
    limits = queue.settings
    if not limits.limits_groups:
        yield f"{queue.name}, group {group!r}: held back although no limit applies"
        return
    room = group_limit.room(
        max_leased=limits.max_leased_per_group,
        rate=limits.rate_per_group,
        leased=numbers[_LEASED],
        unclaimed=numbers[_UNCLAIMED],
        most=MAX_ADMITTED,
    )
    if room and numbers[_HELD]:
        yield (
            f"{queue.name}, group {group!r}: {numbers[_HELD]} are held back, but the limit has room"
            f" for {room}"
        )


def _kind(gate: int, state: str) -> str:
    if gate == ADMITTED:
        return _LEASED if state == State.LEASED else _UNCLAIMED
    return _HELD if state == State.READY else state


def _pages(session: SqlSession) -> Iterator[list[Queue]]:
    after = ""
    while page := session.queues.page(prefix="", after=after, limit=_PAGE):
        yield page
        after = page[-1].name


def clock_offset(database_clock: Callable[[], int], clock: Callable[[], int]) -> Finding:
    """All nodes use the database's time, so a difference only makes logs harder to read."""
    before = clock()
    database = database_clock()
    after = clock()
    offset = database - (before + after) // 2
    text = (
        f"the database's clock says {instant_text(database)}, this machine's"
        f" {instant_text(database - offset)}: the database is {difference_text(offset)}"
        f" {'ahead' if offset >= 0 else 'behind'}"
    )
    name = "database clock"
    return ok(name, text) if abs(offset) < SECOND else warn(name, text)
