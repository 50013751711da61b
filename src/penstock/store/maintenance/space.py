"""How much space a store takes, by day and by queue, for `penstock doctor`."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

import msgspec

from penstock.domain.lake.layout import dt_of_day
from penstock.domain.store.finding import Finding, ok
from penstock.store.commit.session import SqlSession

_MIB = 1024 * 1024
_OF_A_DAY = re.compile(r"(\w+?)_(\d{5,})")
_MAX_QUEUES = 50
_ROW_BYTES = 400  # of a message besides its body; see docs/scaling.md


class QueueSpace(msgspec.Struct):
    messages: int = 0
    finished: int = 0
    bytes: int = 0


def examine_days(session: SqlSession) -> Iterator[Finding]:
    """The tables of each day, which are dropped whole, and all others."""
    sizes = session.read(_sizes)
    days: defaultdict[int, Counter[str]] = defaultdict(Counter)
    others: Counter[str] = Counter()
    for table, size in sizes:
        match = _OF_A_DAY.fullmatch(table)
        if match is None:
            others[table] += size
        else:
            days[int(match[2])][match[1]] += size
    for day, parts in sorted(days.items()):
        yield ok("space", f"{dt_of_day(day)}: {_text(parts)}")
    yield ok("space", f"all days together: {_text(others)}")
    free = session.read(lambda s: s.db.rows("checks.free_space"))
    if free:
        text = f"{_mib(int(free[0][0]))} of the file are free and will be used again"
        yield ok("space", text)


def examine_queues(session: SqlSession) -> Iterator[Finding]:
    """Reads all messages and their history, so only on request."""
    found, names = session.read(_queues)
    largest = sorted(found.items(), key=lambda item: -item[1].bytes)[:_MAX_QUEUES]
    for queue_no, space in largest:
        yield ok(
            "space of queue",
            f"{names.get(queue_no, f'removed queue {queue_no}')}: about {_mib(space.bytes)}"
            f" ({space.messages} messages, {space.finished} in history)",
        )
    if len(found) > len(largest):
        yield ok("space of queue", f"and {len(found) - len(largest)} smaller queues")


def _sizes(session: SqlSession) -> list[tuple[str, int]]:
    session.db.raise_time_limits()
    return [(name, int(size)) for name, size in session.db.rows("checks.table_sizes")]


def _queues(session: SqlSession) -> tuple[dict[int, QueueSpace], dict[int, str]]:
    session.db.raise_time_limits()
    session.db.post("checks.read_everything")
    found: defaultdict[int, QueueSpace] = defaultdict(QueueSpace)
    for queue_no, count, size in session.db.rows("checks.space_of_messages"):
        found[queue_no].messages += int(count)
        found[queue_no].bytes += int(size) + _ROW_BYTES * int(count)
    for day in session.transaction.partitions.days():
        for queue_no, count, size in session.db.rows("checks.space_of_history", day=day):
            found[queue_no].finished += int(count)
            found[queue_no].bytes += int(size) + _ROW_BYTES * int(count)
    queues = session.queues.by_numbers(list(found))
    return dict(found), {queue.queue_no: queue.name for queue in queues}


def _text(parts: Counter[str]) -> str:
    largest = ", ".join(f"{name} {_mib(size)}" for name, size in parts.most_common(4) if size)
    return f"{_mib(parts.total())}" + (f" ({largest})" if largest else "")


def _mib(size: int) -> str:
    return f"{size / _MIB:.1f} MiB"
