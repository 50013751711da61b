"""The tables of the lake, which the archiver writes and the pipeline reads.

    <lake>/<table>/dt=2026-01-31/<table>-<from>-<to>.parquet                 appended tables
    <lake>/<table>/dt=2026-01-31/snapshot_no=7/<table>-<from>-<to>.parquet   tables of snapshots

Every row is in the lake exactly once.  `dt` is the day (UTC) of the table's instant column.  A file
holds the rows numbered `from` to `to` of its table and day, and never changes.  Readers ignore
names that begin with `_` or `.`, as is usual for Parquet.

Instants are milliseconds since 1970 (UTC).
"""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from functools import partial

import msgspec

from penstock.domain.datetimes import instant_of, moment_of
from penstock.domain.limits import DAY

SCHEMA_VERSION = 1  # written into every file; columns are only ever added, and then nullable
VERSION_KEY = "penstock.schema_version"  # key of that version in a file's metadata
MARKER = "_penstock.json"  # the file with the id of the lake and its schema version


class Type(StrEnum):
    TEXT = "text"
    INT = "int"  # 32 bits
    LONG = "long"  # 64 bits: numbers, instants, totals
    BOOL = "bool"


class LakeColumn(msgspec.Struct, frozen=True):
    type: Type
    is_nullable: bool
    name: str
    meaning: str
    repeats: bool = False  # few distinct values: stored as a dictionary
    since: int = 1  # the version of the table that added it


class LakeTable(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    meaning: str
    columns: tuple[LakeColumn, ...]
    number: str  # the column with the row number, unique in the table or in each day
    instant: str  # the column whose day is `dt`
    of_snapshots: bool = False

    @property
    def version(self) -> int:
        return max(column.since for column in self.columns)

    @property
    def partitions(self) -> tuple[str, ...]:
        """The partition columns between table and files, outermost first."""
        return ("dt", "snapshot_no") if self.of_snapshots else ("dt",)


_text = partial(LakeColumn, Type.TEXT, False)
_text_or_null = partial(LakeColumn, Type.TEXT, True)
_int = partial(LakeColumn, Type.INT, False)
_int_or_null = partial(LakeColumn, Type.INT, True)
_long = partial(LakeColumn, Type.LONG, False)
_long_or_null = partial(LakeColumn, Type.LONG, True)
_bool = partial(LakeColumn, Type.BOOL, False)

_MESSAGE_NO = _long("message_no", "number of the message: dense, never reused; group by this one")
_ID = _text("id", "id of the message (UUIDv7)")
_QUEUE_NO = _long("queue_no", "number of the queue; a later queue of the same name has its own")
_QUEUE = _text("queue", "name of the queue", repeats=True)
_LABELS = (
    _text_or_null("kind", "picks the handler", repeats=True),
    _text_or_null("entity_id", "what it is about"),
    _text_or_null("tag1", "first tag"),
    _text_or_null("tag2", "second tag"),
    _text_or_null("group_key", "group, which is ordered or limited", repeats=True),
    _int("priority", "smaller goes first"),
)
_ROUTE = _text_or_null("route", "the route that its sender set", repeats=True)
_FLOW = (
    _long_or_null("flow_no", "number of the flow that it is a member of; null: none", since=2),
    _text_or_null("flow_id", "id of that flow", repeats=True, since=2),
    _text_or_null("member_name", "its name in the flow", repeats=True, since=2),
)
_CONTENT = (
    _text_or_null("body", "JSON text; null: no longer kept"),
    _text_or_null("attributes", "strings stored with the body, as a JSON object"),
    _text_or_null("trace", "trace context of the sender"),
)

HISTORY = LakeTable(
    name="history",
    meaning="one row per ending of a message (done, dead, cancelled)",
    number="history_no",
    instant="finished_at",
    columns=(
        _long("history_no", "number of the ending within its day"),
        _MESSAGE_NO,
        _ID,
        _QUEUE_NO,
        _QUEUE,
        _text("outcome", "done, dead or cancelled", repeats=True),
        _text_or_null("reason", "why it is dead or cancelled", repeats=True),
        *_LABELS,
        _long("sent_at", "when it was sent"),
        _long("due_at", "when it fell due; if it ended under a lease: when that would expire"),
        _long_or_null("first_leased_at", "first claim"),
        _long_or_null("leased_at", "last claim"),
        _long("finished_at", "when it ended"),
        _int("attempts", "claims that count"),
        _int("failures", "attempts that failed"),
        _int("crashes", "worker crashes while it ran"),
        _int("lease_no", "number of its last lease"),
        _text_or_null("leased_by", "the last lease holder", repeats=True),
        _text_or_null("last_error", "its last error", repeats=True),
        _long("size", "bytes of the body"),
        _ROUTE,
        _text_or_null("held_key", "its dedup key, if it was taken until the message ended"),
        _long_or_null("result_size", "bytes of its result; null: it has none", since=2),
        *_FLOW,
        _text_or_null("flow_name", "name of the flow", repeats=True, since=2),
        _text_or_null(
            "flow_role", "member, on_success, on_failure or on_finish", repeats=True, since=2
        ),
        _text_or_null(
            "flow_parents", "numbers of the members that it waited for, with commas", since=2
        ),
        _int_or_null("step_count", "durable steps that it recorded; null: none", since=2),
        _long_or_null("step_ms", "how long they took together", since=2),
        _long_or_null(
            "suspended_ms", "how long it slept, or waited for signals, without a lease", since=2
        ),
        _text_or_null(
            "steps",
            "JSON list of objects: `name`, `kind` (step, sleep, wait), `at`, `lease_no`, `took_ms`",
            since=2,
        ),
    ),
)

BODIES = LakeTable(
    name="bodies",
    meaning="bodies of the messages in history; the file of the same numbers has the same messages",
    number="history_no",
    instant="finished_at",
    columns=(
        _long("history_no", "number of the ending within its day"),
        _MESSAGE_NO,
        _ID,
        _long("finished_at", "when it ended"),
        *_CONTENT,
        _text_or_null("result", "its result, JSON text; null: it has none", since=2),
    ),
)

ATTEMPTS = LakeTable(
    name="attempts",
    meaning="one row per lease that did not finish its message",
    number="attempt_no",
    instant="ended_at",
    columns=(
        _long("attempt_no", "number of the attempt within its day"),
        _MESSAGE_NO,
        _ID,
        _QUEUE_NO,
        _QUEUE,
        _int("lease_no", "number of the lease"),
        _text("outcome", "failed, expired, released, snoozed, timed_out, crashed", repeats=True),
        _long_or_null("leased_at", "when it was claimed"),
        _long("ended_at", "when the lease ended"),
        _text_or_null("leased_by", "the lease holder", repeats=True),
        _text_or_null("error", "its error", repeats=True),
        _long_or_null("flow_no", "number of the flow of the message; null: none", since=2),
        _int_or_null("step_count", "steps that were recorded in it; null: none", since=2),
        _text_or_null(
            "suspended_by", "sleep or wait: the handler began one in it", repeats=True, since=2
        ),
    ),
)

FACTS = LakeTable(
    name="facts",
    meaning="facts about other things than messages: circuits, workers, scaling",
    number="fact_no",
    instant="at",
    columns=(
        _long("fact_no", "number of the fact"),
        _long("at", "when it happened"),
        _text("kind", "what happened", repeats=True),
        _text("subject", "what it happened to: an id or a name", repeats=True),
        _text("data", "the rest, as a JSON object"),
    ),
)

BACKLOG = LakeTable(
    name="backlog",
    meaning=(
        "the counters of a queue, each minute; a minute without a row: the queue was empty, and "
        "nothing has happened since the row before"
    ),
    number="sample_no",
    instant="at",
    columns=(
        _long("sample_no", "number of the sample"),
        _long("at", "when the counters were read"),
        _QUEUE_NO,
        _QUEUE,
        _long("waiting", "not due yet"),
        _long("ready", "due and not leased"),
        _long("leased", "leased"),
        _long("dead", "dead, in this queue"),
        _long("sent_total", "arrivals since the queue was created: sends, redrives, dead letters"),
        _long("done_total", "ended as done"),
        _long("dead_total", "ended as dead"),
        _long("cancelled_total", "ended as cancelled"),
        _long("failed_total", "attempts that failed"),
        _long("expired_total", "leases that expired"),
        _long("claimed_total", "claims"),
    ),
)

_SNAPSHOT_COLUMNS = (
    _long("taken_at", "the instant that the snapshot shows"),
    _QUEUE_NO,
    _QUEUE,
)

SNAPSHOTS = LakeTable(
    name="snapshots",
    meaning="consistent snapshots of all messages that have not ended, including dead ones",
    number="message_no",
    instant="taken_at",
    of_snapshots=True,
    columns=(
        _MESSAGE_NO,
        _ID,
        *_SNAPSHOT_COLUMNS,
        _text("state", "waiting, ready, leased or dead", repeats=True),
        *_LABELS,
        _long("order_no", "place in the queue"),
        _long("sent_at", "when it was sent"),
        _long("due_at", "when it may be claimed; if it is leased: when its lease expires"),
        _long_or_null("expires_at", "when it expires unclaimed"),
        _long_or_null("first_leased_at", "first claim"),
        _long_or_null("leased_at", "last claim"),
        _text_or_null("leased_by", "the current or last lease holder", repeats=True),
        _int("attempts", "claims that count"),
        _int_or_null("max_attempts", "its own limit, which overrides the queue's"),
        _int("failures", "attempts that failed"),
        _int("crashes", "worker crashes while it ran"),
        _int("lease_no", "number of its last lease"),
        _text_or_null("last_error", "its last error", repeats=True),
        _text_or_null("dead_from", "the queue it died in, if this is a dead-letter queue"),
        _text_or_null("reason", "why it died", repeats=True),
        _text_or_null("dedup_key", "its dedup key"),
        _text_or_null("dedup_until", "until when the key is taken: claimed or ended", repeats=True),
        _long_or_null("timeout_ms", "how long one attempt may take"),
        _bool("retries_timeouts", "whether an attempt that took too long is retried"),
        _ROUTE,
        _long("size", "bytes of the body"),
        *_CONTENT,
        *_FLOW,
        _text_or_null(
            "recorded_steps",
            "its durable steps, a JSON list of objects: `name`, `kind`, `outcome`, `at`, "
            "`lease_no`, `took_ms`",
            since=2,
        ),
    ),
)

QUEUES = LakeTable(
    name="queues",
    meaning="the queues at the instant of each snapshot",
    number="queue_no",
    instant="taken_at",
    of_snapshots=True,
    columns=(
        *_SNAPSHOT_COLUMNS,
        _text("settings", "as a JSON object"),
        _bool("is_paused", "whether an operator has stopped claims"),
        _long("created_at", "when it was created"),
    ),
)

TABLES = {t.name: t for t in (HISTORY, BODIES, ATTEMPTS, FACTS, BACKLOG, SNAPSHOTS, QUEUES)}


class Range(msgspec.Struct, frozen=True, order=True):
    """Rows of a table by number, both ends included."""

    from_no: int
    to_no: int


_FILE = re.compile(r"([a-z]+)-(\d{19})-(\d{19})\.parquet")


def dt_of(instant: int) -> str:
    """The partition value of an instant: its day in UTC, as 2026-01-31."""
    return moment_of(instant).date().isoformat()


def dt_of_day(day: int) -> str:
    """The same for a day number since 1970."""
    return dt_of(day * DAY)


def midnight_of(dt: str) -> int:
    """The instant at which the day of a partition begins."""
    return instant_of(datetime.fromisoformat(f"{dt}T00:00+00:00"))


def folder(table: LakeTable, dt: str, *, snapshot_no: int | None = None) -> str:
    """The folder of a table's files, relative to the lake."""
    inner = "" if snapshot_no is None else f"/snapshot_no={snapshot_no}"
    return f"{table.name}/dt={dt}{inner}"


def file_name(table: LakeTable, rows: Range) -> str:
    return f"{table.name}-{rows.from_no:019}-{rows.to_no:019}.parquet"


def range_of(table: LakeTable, name: str) -> Range | None:
    """The rows that a file of this name holds; None: it is not a file of the lake."""
    match = _FILE.fullmatch(name)
    if match is None or match[1] != table.name:
        return None
    return Range(int(match[2]), int(match[3]))
