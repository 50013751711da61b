"""What the archiver reads from a store: rows by number, and marks of its progress."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Any

import msgspec

from penstock.domain.lake.layout import ATTEMPTS, BODIES, HISTORY, SNAPSHOTS, Range, Type
from penstock.domain.lake.progress import ALL_DAYS, ArchiveSource, Mark, Place
from penstock.domain.limits import DAY
from penstock.domain.message.lifecycle import Message
from penstock.domain.message.selection import count_fitting
from penstock.domain.message.step import ArchivedStep
from penstock.ports.archive import ArchivePosition, LakePage, LakeRow, Snapshot
from penstock.store.database import QueryResult, Row
from penstock.store.entities.archived_steps import (
    recorded_steps,
    sizes_of_steps,
    steps_of_attempts,
    steps_of_endings,
)
from penstock.store.entities.entity import SqlEntity, params_of, reader
from penstock.store.verbs.transaction_state import json_list

LAKE = "lake_id"
MAX_PAGE_BYTES = 32 * 1024 * 1024  # of bodies: a page of large ones is short, but not the last
_NOTHING: Row = (None, None, None)
_mark = reader(Mark)
_MESSAGE_NO = [c.name for c in HISTORY.columns].index("message_no")
_ID = [c.name for c in HISTORY.columns].index("id")
_FINISHED_AT = [c.name for c in HISTORY.columns].index("finished_at")
_SIZE = [c.name for c in HISTORY.columns].index("size")
_RESULT_SIZE = [c.name for c in HISTORY.columns].index("result_size")
_LEASE_NO = [c.name for c in ATTEMPTS.columns].index("lease_no")
_SNAPSHOT_SIZE = [c.name for c in SNAPSHOTS.columns].index("size")
_BODY_DAY = _SNAPSHOT_SIZE + 1  # in place of the content
_BOOLEANS = [at for at, column in enumerate(SNAPSHOTS.columns) if column.type is Type.BOOL]
_PAST = ("id", "attempts", "failures", "crashes", "lease_no", "first_leased_at", "last_error")


class SqlArchive(SqlEntity):
    def position(self, *, without: Collection[Place] | None = None) -> ArchivePosition:
        """Reads the numbers before the writers: in the other order a writer could be missed."""
        if without is None:
            without = {mark.place for mark in self.marks() if mark.is_closed}
        asked: dict[Place, QueryResult] = {}
        for source in ArchiveSource:
            days = self._transaction.partitions.days() if source.is_by_day else [ALL_DAYS]
            for day in days:
                if (source, day) not in without:
                    asked[source, day] = self._db.ask(f"archive.last_{source}", day=day)
        cut = {place: int(answer.rows()[0][0] or 0) for place, answer in asked.items()}
        writers = frozenset(str(writer) for (writer,) in self._db.rows("archive.writers"))
        return ArchivePosition(cut, writers)

    def marks(self) -> list[Mark]:
        return list(map(_mark, self._db.rows("archive.marks")))

    def mark(self, source: ArchiveSource, day: int) -> Mark:
        rows = self._db.rows("archive.mark", {"source": source.value, "day": day})
        return _mark(rows[0]) if rows else Mark(source, day)

    def plan(self, mark: Mark) -> bool:
        params = _key(mark) | {"planned_no": mark.planned_no}
        return bool(self._db.rows("archive.plan", params))

    def move(self, before: Mark, after: Mark) -> bool:
        params = _key(before) | {"planned_no": before.planned_no, "now": after.moved_at}
        params["rows"] = after.rows_total - before.rows_total
        return self._db.run("archive.move", params) == 1

    def close(self, mark: Mark, *, now: int) -> None:
        self._db.run("archive.close", _key(mark) | {"now": now})

    def page(
        self, source: ArchiveSource, day: int, rows: Range, *, limit: int, with_bodies: bool = False
    ) -> LakePage:
        params = _range(rows, limit)
        found = self._db.rows(f"archive.{source}", params, day=day)
        if source is ArchiveSource.ATTEMPTS:
            steps = steps_of_attempts(self._db, ((row[1], row[_LEASE_NO]) for row in found))
            return LakePage([(*row, *of_row) for row, of_row in zip(found, steps, strict=True)])
        if source is not ArchiveSource.HISTORY:
            return LakePage(found)
        if with_bodies:
            sizes = (row[_SIZE] + (row[_RESULT_SIZE] or 0) for row in found)
            found = found[: count_fitting(sizes, MAX_PAGE_BYTES)]
        steps = steps_of_endings(self._db, ((row[_MESSAGE_NO], row[_FINISHED_AT]) for row in found))
        endings = [(*row[:-1], *of_row) for row, of_row in zip(found, steps, strict=True)]
        if not with_bodies or not found:
            return LakePage(endings)
        contents = self._contents([(row[_MESSAGE_NO], row[-1]) for row in found])
        results = self._results(day, Range(rows.from_no, found[-1][0]))
        return LakePage(
            endings,
            [
                _body(ending, (*content, results.get(ending[0])))
                for ending, content in zip(endings, contents, strict=True)
            ],
        )

    def live_page(self, rows: Range, *, limit: int, taken_at: int) -> list[LakeRow]:
        params = _range(rows, limit) | {"taken_at": taken_at}
        found = self._db.rows("archive.messages", params)
        of_steps = sizes_of_steps(self._db, (row[0] for row in found))
        sizes = (row[_SNAPSHOT_SIZE] + of_steps.get(row[0], 0) for row in found)
        found = found[: count_fitting(sizes, MAX_PAGE_BYTES)]
        contents = self._contents([(row[0], row[_BODY_DAY]) for row in found])
        steps = recorded_steps(self._db, (row[0] for row in found))
        return [
            (
                *_with_booleans(row[:_BODY_DAY]),
                *content,
                *row[_BODY_DAY + 1 :],
                steps.get(row[0]),
            )
            for row, content in zip(found, contents, strict=True)
        ]

    def message_nos(self) -> Range | None:
        [(first,)] = self._db.rows("archive.first_message")
        [(last,)] = self._db.rows("archive.last_message")
        return None if first is None else Range(int(first), int(last))

    def next_snapshot(self) -> int:
        [(number,)] = self._db.rows("archive.next_snapshot")
        return int(number)

    def end_snapshot(self, snapshot: Snapshot) -> None:
        self._db.run("archive.end_snapshot", msgspec.structs.asdict(snapshot))

    def snapshot(self) -> Snapshot | None:
        rows = self._db.rows("archive.snapshot")
        return Snapshot(*rows[0]) if rows else None

    def lake_id(self) -> str | None:
        rows = self._db.rows("meta.get", {"name": LAKE})
        return str(rows[0][0]) if rows else None

    def make_lake_id(self) -> str:
        [(made,)] = self._db.rows("meta.new_secret")
        self._db.run("meta.set_if_absent", {"name": LAKE, "value": made[:32]})
        [(lake_id,)] = self._db.rows("meta.get", {"name": LAKE})
        return str(lake_id)

    def begin_new_lake(self) -> None:
        self._db.run("archive.forget_marks")
        self._db.run("archive.forget_lake")

    def _contents(self, wanted: Iterable[tuple[int, int]]) -> list[Row]:
        """Body, attributes and trace of each (message_no, day); None for days that were dropped."""
        wanted = list(wanted)
        there = set(self._transaction.partitions.days())
        by_day: dict[int, list[int]] = {}
        for message_no, day in wanted:
            if day in there:
                by_day.setdefault(day, []).append(message_no)
        asked = [
            self._db.ask("messages.bodies", {"message_nos": json_list(nos)}, day=day)
            for day, nos in by_day.items()
        ]
        found = {row[0]: row[1:] for row in chain.from_iterable(a.rows() for a in asked)}
        return [found.get(message_no, _NOTHING) for message_no, _ in wanted]

    def _results(self, day: int, rows: Range) -> dict[int, str]:
        """Results by the numbers of the endings."""
        params = {"after_no": rows.from_no - 1, "upto_no": rows.to_no}
        return dict(self._db.rows("archive.results", params, day=day))


def _key(mark: Mark) -> dict[str, Any]:
    return params_of(mark, ("source", "day", "done_no"))


def _range(rows: Range, limit: int) -> dict[str, object]:
    return {"after_no": rows.from_no - 1, "upto_no": rows.to_no, "limit": limit}


def _body(ending: LakeRow, content: Row) -> LakeRow:
    """The row of bodies that belongs to a row of history."""
    assert len(ending) == len(HISTORY.columns)
    row = (ending[0], ending[_MESSAGE_NO], ending[_ID], ending[_FINISHED_AT], *content)
    assert len(row) == len(BODIES.columns)
    return row


def _with_booleans(row: Row) -> list[Any]:
    """SQLite stores booleans as 0 and 1."""
    values = list(row)
    for at in _BOOLEANS:
        values[at] = bool(values[at])
    return values


class SqlRestoring(SqlEntity):
    """Messages restored from the lake: finds known ones, sets their earlier attempts."""

    def known(self, ids: Sequence[str]) -> set[str]:
        """The ids that the store has, live or in its history."""
        params = {"ids": json_list(list(ids))}
        asked = [self._db.ask("restore.known_live", params)]
        for day in self._transaction.partitions.days():
            asked.append(self._db.ask("restore.known_ended", params, day=day))
        return {row[0] for answer in asked for row in answer.rows()}

    def set_attempts(self, messages: Sequence[Message]) -> None:
        """Set attempts and errors of messages that were sent in this transaction."""
        rows = [params_of(message, _PAST) for message in messages]
        if rows:
            self._db.update("restore.set_attempts", rows)

    def add_steps(self, steps: Sequence[tuple[str, ArchivedStep]]) -> None:
        """Steps, and waits that have not ended, of messages that were sent in this transaction."""
        recorded: list[dict[str, Any]] = []
        waits: list[dict[str, Any]] = []
        counts: Counter[str] = Counter()
        for message_id, step in steps:
            row = params_of(step, ("name", "at", "lease_no")) | {"id": message_id}
            if not step.is_recorded:
                waits.append(row | {"signal": step.signal, "until_at": step.until_at})
                continue
            counts[message_id] += 1
            recorded.append(
                row
                | {
                    "step_no": counts[message_id],
                    "outcome": bytes(step.outcome).decode(),
                    "day": step.at // DAY,
                    "kind": step.kind.value,
                    "took_ms": step.took_ms,
                }
            )
        self._db.update("steps.restore", recorded)
        self._transaction.lock_signals(sorted({wait["signal"] for wait in waits}))
        self._db.update("steps.restore_wait", waits)
