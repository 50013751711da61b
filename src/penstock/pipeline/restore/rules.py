"""Reconstructs from the lake whether a message was live at an instant T, and how it was.

A message was live at T if it was sent by then and had not finally ended.  Sources of a message, the
best first:

    the latest snapshot up to T         as it was then, unless it has ended since
    the first snapshot after T          it was sent before T, so it was live at T, too
    its first ending after T            with the body stored beside it

Attempts are counted from the lake's attempts.  Restored messages have no lease holder: leased ones
become ready.  A message that was sent after the lake's last snapshot and had not ended when the
store was lost is not in the lake and cannot be restored.

An engine collects the evidence of each message; what follows from it is decided here, once.  If
two messages have the same id, the one with the smaller number is restored: the other one was
restored from the lake, which keeps the id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from penstock.domain.lake import layout as lake
from penstock.domain.lake.layout import LakeColumn, Type
from penstock.domain.message.step import steps_at

Row = Mapping[str, Any]

CONTENT = ("body", "attributes", "trace")  # read last, and only of messages that are restored
HEAD = tuple(column for column in lake.SNAPSHOTS.columns if column.name not in CONTENT)
FINAL = ("done", "cancelled")  # a message that ended so never comes back; a dead one may
# Where the content of a message is: in a snapshot, or beside one of its endings.
CONTENT_PLACE = (
    LakeColumn(Type.LONG, True, "content_snapshot_no", "the snapshot that has the content"),
    LakeColumn(Type.TEXT, True, "content_dt", "the day of the ending that has the content"),
    LakeColumn(Type.LONG, True, "content_history_no", "the number of that ending"),
)
DECIDED = (*HEAD, *CONTENT_PLACE)  # the columns of `restore_message`
# When the lake has a final ending of the same id after T, which may have another number: a restored
# message keeps its id and gets a new number.
ENDED_AT = "ended_at"

# Columns and values: one of the columns must have one of the values.
Condition = tuple[tuple[str, ...], tuple[str, ...]]

_COUNTED = ("failed", "expired", "timed_out", "crashed")
_FAILED = ("failed", "timed_out")
_IN_HISTORY = {column.name for column in lake.HISTORY.columns}
_NOTHING: Row = {}


class RestoreFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which messages to restore; empty fields do not restrict."""

    queues: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    states: tuple[str, ...] = ()

    def conditions(self) -> list[Condition]:
        pairs: list[Condition] = [*self.stored_conditions(), (("state",), self.states)]
        return [(columns, values) for columns, values in pairs if values]

    def stored_conditions(self) -> list[Condition]:
        """Those on columns that rows of the lake have; the state at an instant is computed."""
        pairs: list[Condition] = [
            (("queue",), self.queues),
            (("kind",), self.kinds),
            (("group_key",), self.groups),
            *((("tag1", "tag2"), (tag,)) for tag in self.tags),
        ]
        return [(columns, values) for columns, values in pairs if values]

    def matches(self, row: Row) -> bool:
        return all(
            any(row[column] in values for column in columns)
            for columns, values in self.conditions()
        )


class Bounds(msgspec.Struct, frozen=True):
    """The snapshots on both sides of the instant, by number."""

    base_no: int | None
    base_at: int | None
    next_no: int | None

    @property
    def nearest_no(self) -> int | None:
        """The snapshot whose queue settings are restored."""
        return self.next_no if self.base_no is None else self.base_no


class Evidence(msgspec.Struct, kw_only=True):
    """What the lake has of one message that was sent by the instant and had not ended finally."""

    base: Row | None = None  # in the last snapshot up to the instant
    later: Row | None = None  # in the first snapshot at or after it
    endings: Sequence[Row] = ()  # rows of history, with `dt`
    attempts: Sequence[Row] = ()


class EndedSource(Protocol):
    """Messages that ended in a period, with their bodies, from either engine."""

    def heads(self) -> Iterator[Row]:
        """`id`, `queue`, `kind`, the outcome as `state`, and `has_body` of each."""
        ...

    def rows(self) -> Iterator[Row]:
        """Rows of history with their contents and `dt`, by queue and number."""
        ...


class RestoreSource(Protocol):
    """The messages that were live at an instant, from either engine."""

    @property
    def bounds(self) -> Bounds: ...
    def heads(self) -> Iterator[Row]:
        """`id`, `queue`, `kind`, `state`, `has_body` and ENDED_AT of each."""
        ...

    def rows(self) -> Iterator[Row]:
        """Rows of a snapshot with ENDED_AT, in the order of their places in the queues."""
        ...

    def queue_settings(self) -> dict[str, str]:
        """Settings of the queues in the nearest snapshot: JSON by queue name."""
        ...


def bounds_of(snapshots: Iterable[tuple[int, int]], *, at: int) -> Bounds:
    """The last snapshot up to the instant and the first from it on; pairs of instant and number."""
    found = sorted(snapshots)
    before = [pair for pair in found if pair[0] <= at]
    after = [pair for pair in found if pair[0] >= at]
    base_at, base_no = before[-1] if before else (None, None)
    return Bounds(base_no, base_at, after[0][1] if after else None)


def restore_message(
    message_no: int, evidence: Evidence, *, at: int, bounds: Bounds
) -> dict[str, Any] | None:
    """The columns of DECIDED, as the message was at the instant; None: it was not live."""
    last, next_ = _around(evidence.endings, at=at)
    if not _was_there(evidence, last, next_, bounds):
        return None
    snap = evidence.base or evidence.later or _NOTHING
    is_dead = _is_at_rest(evidence, last, next_, at=at)
    tries = _Tries.of(evidence.attempts, since=last, at=at)
    ending = next_ or last or _NOTHING
    last, next_ = last or _NOTHING, next_ or _NOTHING
    # A lease between the snapshot and the instant has changed the due date.
    is_unclaimed = snap.get("lease_no") == (_greatest(tries.lease_no, last.get("lease_no")) or 0)
    was_waiting = snap.get("state") == "waiting" and snap["due_at"] > at
    is_waiting = not is_dead and was_waiting and is_unclaimed
    first = _least(
        snap.get("first_leased_at"), ending.get("first_leased_at"), tries.first_leased_at
    )
    is_kept = bool(snap)  # in a snapshot, with its content
    values = {column.name: _either(column.name, snap, ending) for column in HEAD}
    values |= {c.name: bool(snap.get(c.name)) for c in HEAD if c.type is Type.BOOL}
    values |= {
        "message_no": message_no,
        "taken_at": at,
        "queue": _first(next_.get("queue"), snap.get("queue"), last.get("queue")),
        "queue_no": _first(next_.get("queue_no"), snap.get("queue_no"), last.get("queue_no")),
        "state": "dead" if is_dead else "waiting" if is_waiting else "ready",
        "due_at": snap["due_at"] if is_waiting else _either("sent_at", snap, ending),
        "order_no": _first(snap.get("order_no"), message_no),
        "first_leased_at": first if first is not None and first <= at else None,
        "leased_at": None,
        "leased_by": None,
        "lease_no": _greatest(
            snap.get("lease_no"), next_.get("lease_no"), last.get("lease_no"), tries.lease_no
        )
        or 0,
        "last_error": _first(tries.error, snap.get("last_error"), last.get("last_error")),
        "reason": _first(last.get("reason"), snap.get("reason")) if is_dead else None,
        "dedup_key": _first(snap.get("dedup_key"), ending.get("held_key")),
        "dedup_until": _first(
            snap.get("dedup_until"), "ended" if ending.get("held_key") is not None else None
        ),
        "content_snapshot_no": (
            (bounds.base_no if evidence.base else bounds.next_no) if is_kept else None
        ),
        "content_dt": None if is_kept else ending["dt"],
        "content_history_no": None if is_kept else ending["history_no"],
    }
    earlier, later = (
        None if row is None else row.get("recorded_steps")
        for row in (evidence.base, evidence.later)
    )
    values["recorded_steps"] = steps_at(earlier, later, at=at)
    # A dead message has the counts it died with.
    for name in ("attempts", "failures", "crashes"):
        died_with = _first(last.get(name), snap.get(name))
        values[name] = died_with if is_dead else getattr(tries, name)
    return values


def _around(endings: Iterable[Row], *, at: int) -> tuple[Row | None, Row | None]:
    """The last ending up to the instant, and the first one after it."""
    ordered = sorted(endings, key=lambda e: (e["finished_at"], e["history_no"]))
    past = [ending for ending in ordered if ending["finished_at"] <= at]
    coming = [ending for ending in ordered if ending["finished_at"] > at]
    return past[-1] if past else None, coming[0] if coming else None


def _was_there(evidence: Evidence, last: Row | None, next_: Row | None, bounds: Bounds) -> bool:
    """False if the message had finally ended: a dead one may still have been in a queue."""
    if last is None:
        return True
    if last["outcome"] in FINAL:
        return False
    if next_ or evidence.base or evidence.later:
        return True
    # A message that died before a snapshot and is not in it was gone by then.
    return bounds.base_at is None or bool(last["finished_at"] > bounds.base_at)


def _is_at_rest(evidence: Evidence, last: Row | None, next_: Row | None, *, at: int) -> bool:
    """Dead and, as far as is known, neither redriven nor moved by then."""
    died_at = 0 if last is None else last["finished_at"]
    if evidence.base is not None and evidence.base["taken_at"] >= died_at:
        return bool(evidence.base["state"] == "dead")
    if last is None:
        return False
    if next_ is not None:
        # A dead letter ends in another queue.
        was_back = next_["leased_at"] is not None and next_["leased_at"] <= at
        return bool(next_["queue"] == last["queue"]) and not was_back
    return evidence.later is None or bool(evidence.later["state"] == "dead")


class _Tries(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts since the message was last redriven."""

    attempts: int
    failures: int
    crashes: int
    lease_no: int | None
    first_leased_at: int | None
    error: str | None  # of the last one

    @classmethod
    def of(cls, attempts: Iterable[Row], *, since: Row | None, at: int) -> _Tries:
        born_at = -1 if since is None else since["finished_at"]
        own = [a for a in attempts if born_at < a["ended_at"] <= at]
        outcomes = [a["outcome"] for a in own]
        latest = max(own, key=lambda a: (a["ended_at"], a["attempt_no"]), default=_NOTHING)
        return cls(
            attempts=sum(outcome in _COUNTED for outcome in outcomes),
            failures=sum(outcome in _FAILED for outcome in outcomes),
            crashes=outcomes.count("crashed"),
            lease_no=_greatest(*(a["lease_no"] for a in own)),
            first_leased_at=_least(*(a["leased_at"] for a in own)),
            error=latest.get("error"),
        )


def _either(name: str, snap: Row, ending: Row) -> Any:
    """The value in the snapshot, or else in the ending."""
    return _first(snap.get(name), ending.get(name) if name in _IN_HISTORY else None)


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _greatest(*values: int | None) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _least(*values: int | None) -> int | None:
    return min((value for value in values if value is not None), default=None)
