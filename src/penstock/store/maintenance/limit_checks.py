"""Checks of limits: no message is held back without a limit that is reached."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from penstock.domain.message.lifecycle import State
from penstock.domain.queue import group_limit as group_limit
from penstock.domain.queue.group_limit import ADMITTED, HELD_BACK, MAX_ADMITTED
from penstock.domain.queue.queue import Queue
from penstock.domain.store.finding import Finding, fail, ok
from penstock.store.commit.session import SqlSession

_PAGE = 1_000
_LEASED = "leased"
_UNCLAIMED = "unclaimed"
_HELD = "held back"


def examine_limits(session: SqlSession) -> Iterator[Finding]:
    wrong = session.read(wrong_limits)
    yield from (fail("limits", text) for text in wrong)
    if not wrong:
        yield ok("limits", "no message waits for a limit that is not reached")


def wrong_limits(session: SqlSession) -> list[str]:
    """Describes each violation; only for the doctor, as it reads all messages of groups."""
    queues = {queue.queue_no: queue for queue in _all_queues(session)}
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


def _all_queues(session: SqlSession) -> Iterator[Queue]:
    after = ""
    while page := session.queues.page(prefix="", after=after, limit=_PAGE):
        yield from page
        after = page[-1].name
