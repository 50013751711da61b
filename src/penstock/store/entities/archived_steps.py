"""The columns of the lake about durable steps: where the time of a message went."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from penstock.domain.message.step import ArchivedStep, StepKind
from penstock.ports.archive import LakeRow
from penstock.store.database import Database, Row
from penstock.store.verbs.transaction_state import json_list

_TIMES = ("name", "kind", "at", "lease_no", "took_ms")
_NO_STEPS: Row = (None, None, None, None)


def steps_of_endings(db: Database, endings: Iterable[tuple[int, int]]) -> list[Row]:
    """step_count, step_ms, suspended_ms and steps of each (message_no, finished_at)."""
    endings = list(endings)
    found = _by_message(db, "steps.times", {message_no for message_no, _ in endings})
    return [
        _ending(found[message_no], finished_at) if message_no in found else _NO_STEPS
        for message_no, finished_at in endings
    ]


def steps_of_attempts(db: Database, attempts: Iterable[tuple[int, int]]) -> list[Row]:
    """step_count and suspended_by of each (message_no, lease_no)."""
    attempts = list(attempts)
    numbers = {message_no for message_no, _ in attempts}
    counts: Counter[tuple[int, int]] = Counter()
    suspended: dict[tuple[int, int], str] = {}
    for message_no, steps in _by_message(db, "steps.times", numbers).items():
        for _, kind, _, lease_no, _ in steps:
            if kind == StepKind.STEP:
                counts[message_no, lease_no] += 1
            else:
                suspended[message_no, lease_no] = kind
    for wait in db.rows("steps.waits_begun", {"message_nos": _list(numbers)}):
        suspended[wait[0], wait[-1]] = StepKind.WAIT.value
    return [(counts.get(key), suspended.get(key)) for key in attempts]


def sizes_of_steps(db: Database, message_nos: Iterable[int]) -> Mapping[int, int]:
    """Bytes of all outcomes."""
    rows = db.rows("steps.sizes_of", {"message_nos": _list(message_nos)})
    return {message_no: int(size) for message_no, size in rows}


def recorded_steps(db: Database, message_nos: Iterable[int]) -> Mapping[int, str]:
    """Steps with their outcomes and waits that have not ended, of messages that have any."""
    params = {"message_nos": _list(message_nos)}
    found: defaultdict[int, list[ArchivedStep]] = defaultdict(list)
    for message_no, name, kind, outcome, *times in db.rows("steps.of_messages", params):
        at, lease_no, took_ms = times
        found[message_no].append(
            ArchivedStep(
                name=name,
                kind=StepKind(kind),
                at=at,
                outcome=msgspec.Raw(outcome.encode()),
                lease_no=lease_no,
                took_ms=took_ms,
            )
        )
    for message_no, name, signal, at, until_at, lease_no in db.rows("steps.waits_begun", params):
        found[message_no].append(
            ArchivedStep(
                name=name,
                kind=StepKind.WAIT,
                at=at,
                lease_no=lease_no,
                signal=signal,
                until_at=until_at,
            )
        )
    return {no: msgspec.json.encode(steps).decode() for no, steps in found.items()}


def _by_message(db: Database, query: str, message_nos: Iterable[int]) -> dict[int, list[Row]]:
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for message_no, *step in db.rows(query, {"message_nos": _list(message_nos)}):
        found[message_no].append(tuple(step))
    return found


def _ending(steps: Sequence[Row], finished_at: int) -> LakeRow:
    count = took = suspended = 0
    for _, kind, at, _, took_ms in steps:
        if kind == StepKind.STEP:
            count += 1
            took += took_ms or 0
        elif kind == StepKind.SLEEP:  # recorded when it begins; its message may end before it does
            suspended += max(0, min(took_ms or 0, finished_at - at))
        else:
            suspended += took_ms or 0
    rows = [dict(zip(_TIMES, step, strict=True)) for step in steps]
    return count, took, suspended, msgspec.json.encode(rows).decode()


def _list(message_nos: Iterable[int]) -> str:
    return json_list(sorted(set(message_nos)))
