"""The lake: restores messages from it as they were, and reads the tables computed from it.

A message that the store knows is skipped: it is live, in the store's history, or has ended since
according to the store's own lake, which outlives the history.  So a restore can be repeated at any
time, even after a kill or into a running store, and never duplicates a message.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from typing import Any

import msgspec

from penstock.domain.errors import InvalidRequest, PenstockError, TableNotFound
from penstock.domain.insights.answer import SourceTables
from penstock.domain.lake.layout import SNAPSHOTS
from penstock.domain.lake.tables import (
    MAX_ROWS,
    AsOf,
    TableReadiness,
    TableRows,
    TableSummary,
    TableVersion,
    check_day,
    check_table,
)
from penstock.domain.limits import DAY
from penstock.domain.message import lifecycle
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.lifecycle import Content, Message, State
from penstock.domain.message.step import ArchivedStep, archived_steps
from penstock.domain.optional_parts import not_installed
from penstock.domain.queue.queue import Queue, QueueSettings, check_settings
from penstock.ports.archive import TableReader
from penstock.ports.clock import Clock
from penstock.ports.store import Sent, Session, Store
from penstock.ports.ticket import Ticket

LakeMessage = Mapping[str, Any]  # a row of a snapshot, by the names of its columns
_attributes = msgspec.json.Decoder(dict[str, str])
# The columns that a restored message keeps.  It gets a new number and place; its lease and the
# queue it died in are dropped.
_KEPT = {column.name for column in SNAPSHOTS.columns}.intersection(Message.__struct_fields__) - {
    "message_no",
    "queue_no",
    "state",
    "order_no",
    "leased_at",
    "leased_by",
    "dead_from",
    "reason",
    "flow_no",
}


class Restored(msgspec.Struct, frozen=True):
    restored: int = 0
    known: int = 0  # existed already
    without_body: int = 0  # the lake does not have their bodies
    of_flows: int | msgspec.UnsetType = msgspec.UNSET  # restored as messages of their own
    refused: tuple[tuple[str, str], ...] = ()  # ids, and why

    def __add__(self, other: Restored) -> Restored:
        return Restored(
            self.restored + other.restored,
            self.known + other.known,
            self.without_body + other.without_body,
            ((self.of_flows or 0) + (other.of_flows or 0)) or msgspec.UNSET,
            self.refused + other.refused,
        )


class RestoreService:
    def __init__(self, store: Store, clock: Clock, *, lake_id: str | None = None) -> None:
        """`lake_id`: of the lake that the messages come from."""
        self._store = store
        self._clock = clock
        self._is_own = lake_id is not None and lake_id == (
            store.read(lambda session: session.archive.lake_id()).result()
        )

    def known_ids(self, rows: Sequence[LakeMessage]) -> set[str]:
        """The ids of messages that would not be restored."""
        return self._store.read(lambda session: self._known_ids(session, rows)).result()

    def make_queues(self, settings: Mapping[str, str]) -> int:
        """Create missing queues; `settings`: JSON texts by name, as the queues had them."""
        now = self._clock.now()

        def do(session: Session) -> int:
            missing = [name for name in settings if session.queues.find(name) is None]
            for name in missing:
                session.queues.add(name, _settings(name, settings[name]), now=now)
            return len(missing)

        return self._store.write(do).result()

    def put(self, rows: Sequence[LakeMessage]) -> Ticket[Restored]:
        """Restore these messages in one transaction."""
        now = self._clock.now()
        return self._store.write(
            lambda session: _put(session, rows, self._known_ids(session, rows), now=now)
        )

    def _known_ids(self, session: Session, rows: Sequence[LakeMessage]) -> set[str]:
        known = session.restoring.known([row["id"] for row in rows])
        if self._is_own:
            known |= {row["id"] for row in rows if row.get("ended_at") is not None}
        return known


def _put(
    session: Session, rows: Sequence[LakeMessage], known: Container[str], *, now: int
) -> Restored:
    # A message that was restored before may be in the lake under two numbers.
    once = {row["id"]: row for row in rows if row["id"] not in known}
    fresh = list(once.values())
    whole = [_woken(session, row, now=now) for row in fresh if row["body"] is not None]
    new = [_new(row, _queue(session, row["queue"], now=now), now=now) for row in whole]
    answers = session.send(new) if new else []
    refused = [
        (n.message.id, f"{answer} ({answer.code})")
        for n, answer in zip(new, answers, strict=True)
        if isinstance(answer, PenstockError)
    ]
    sent = [
        (row, n.message)
        for row, n, answer in zip(whole, new, answers, strict=True)
        if isinstance(answer, Sent) and not answer.is_duplicate
    ]
    session.restoring.set_attempts([message for _, message in sent])
    session.restoring.add_steps(
        [(message.id, step) for row, message in sent for step in _steps(row)]
    )
    for row, message in sent:
        if row["state"] == State.DEAD:
            _bury(session, message.id, row["reason"], now=now)
    return Restored(
        restored=len(sent),
        known=len(rows) - len(fresh) + len(whole) - len(sent) - len(refused),
        without_body=len(fresh) - len(whole),
        of_flows=sum(row.get("flow_no") is not None for row, _ in sent) or msgspec.UNSET,
        refused=tuple(refused),
    )


def _woken(session: Session, row: LakeMessage, *, now: int) -> LakeMessage:
    """Due, if this store keeps a signal that the message waits for."""
    signals = [step.signal for step in _steps(row) if step.signal is not None]
    is_woken = any(session.signals.find(signal, now=now) for signal in signals)
    return {**row, "due_at": min(row["due_at"], now)} if is_woken else row


def _steps(row: LakeMessage) -> list[ArchivedStep]:
    text = row.get("recorded_steps")
    return archived_steps.decode(text) if text else []


def _new(row: LakeMessage, queue: Queue, *, now: int) -> NewMessage:
    is_waiting = row["due_at"] > now
    message = msgspec.convert(
        {name: row[name] for name in _KEPT if row[name] is not None}
        | {
            "queue_no": queue.queue_no,
            "state": (State.WAITING if is_waiting else State.READY).value,
            "group": row["group_key"],
            "body_day": now // DAY,
        },
        Message,
    )
    attributes = row["attributes"]
    content = Content(
        row["body"], None if attributes is None else _attributes.decode(attributes), row["trace"]
    )
    # Dedup windows are long over; a key held until an event is held again.
    return NewMessage(message, content, dedup_window_ms=0)


def _queue(session: Session, name: str, *, now: int) -> Queue:
    return session.queues.find(name) or session.queues.add(name, QueueSettings(), now=now)


def _bury(session: Session, message_id: str, reason: str | None, *, now: int) -> None:
    session.messages.change(message_id, lambda m, _: lifecycle.bury(m, reason=reason), now=now)


def _settings(name: str, text: str) -> QueueSettings:
    try:
        return check_settings(msgspec.json.decode(text, type=QueueSettings), name=name)
    except msgspec.MsgspecError as error:
        raise InvalidRequest(f"the settings of queue {name!r} in the lake: {error}") from None


class Tables:
    """Blocks; do not call from an event loop."""

    def __init__(self, tables: TableReader, *, folder: str) -> None:
        self._tables = tables
        self.folder = folder

    def readiness(self) -> TableReadiness:
        return self._tables.readiness()

    def tables(self) -> list[TableSummary]:
        return self._tables.tables()

    def newest_day(self) -> str | None:
        """The newest day of any table; None: there are none."""
        if not self._tables.has_reader() and self.readiness() is TableReadiness.NO_READER:
            self._check_reader()
        return self._tables.newest_day()

    def streams(self, tables: Collection[str], *, from_day: str, to_day: str) -> SourceTables:
        """None: the table was never computed."""
        self._check_reader()
        return self._tables.streams(tables, from_day=from_day, to_day=to_day)

    def versions(self, table: str, *, limit: int) -> list[TableVersion]:
        """Newest first; a plain table has none."""
        check_table(table)
        return self._tables.versions(table, limit=limit) or []

    def rows(
        self, table: str, *, from_day: str, to_day: str, limit: int, as_of: AsOf = None
    ) -> TableRows:
        check_table(table)
        check_day("from_day", from_day)
        check_day("to_day", to_day)
        if not 1 <= limit <= MAX_ROWS:
            raise InvalidRequest(f"limit must be from 1 to {MAX_ROWS}")
        self._check_reader()
        found = self._tables.rows(table, from_day=from_day, to_day=to_day, limit=limit, as_of=as_of)
        if found is None:
            raise TableNotFound(table)
        return found

    def _check_reader(self) -> None:
        if not self._tables.has_reader():
            raise InvalidRequest(not_installed("Parquet support", "archive"))
