"""A check-up of held queues: each is held for a reason that will end the hold."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.domain.store.finding import Finding, fail, ok, warn
from penstock.store.commit.session import SqlSession


def examine_holds(session: SqlSession) -> Iterator[Finding]:
    rows = session.read(lambda s: s.db.rows("circuits.held_reasons"))
    for held_by, pattern, state, is_in_line, is_known, count, name in rows:
        queues = f"queue {name!r} is" if count == 1 else f"{count} queues, such as {name!r}, are"
        circuit = f"circuit {held_by}" if pattern is None else f"circuit {held_by} ({pattern})"
        if is_in_line:
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
