"""Recorded arrivals and service times of one queue, read from the lake without Spark.

An ending does not record when its message was redriven.  So a redriven message arrives when it was
claimed again, and one that was first claimed before the period is left out of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import Any

import msgspec
import pyarrow as pa
from pyarrow import compute as pc

from penstock.domain.lake import layout as lake
from penstock.domain.lake.layout import LakeTable
from penstock.domain.limits import DAY
from penstock.domain.message.history import FAILURES
from penstock.pipeline.files.local_lake import TOO_LARGE, LocalLake
from penstock.pipeline.replays.what_if import (
    AttemptEnd,
    RecordedAttempt,
    RecordedMessage,
    Waits,
    peak_of,
    waits_of,
)
from penstock.pipeline.spark.stopped import PipelineStopped

MAX_MESSAGES = 2_000_000  # about a gigabyte
MAX_DAYS_LATER = 7  # messages that ended later than that after the period are left out
GROUPS, FAIRNESS, CIRCUITS = "groups", "fairness", "circuits"
_ENDINGS = (
    "message_no",
    "lease_no",
    "outcome",
    "priority",
    "sent_at",
    "first_leased_at",
    "leased_at",
    "finished_at",
    "group_key",
    "route",
)
_ATTEMPTS = ("message_no", "lease_no", "outcome", "leased_at", "ended_at")

Row = dict[str, Any]


class RecordedQueue(msgspec.Struct, frozen=True, kw_only=True):
    """The messages that arrived in a period, or were waiting when it began, and have ended."""

    from_at: int
    to_at: int
    messages: list[RecordedMessage]  # in the order of arrival
    wait: Waits
    slots: int  # the most attempts that ran at once
    not_simulated: list[str]  # of GROUPS, FAIRNESS and CIRCUITS: those that the queue uses


def last_day(lake_: LocalLake, queue: str) -> str | None:
    """The last day on which messages of the queue ended."""
    for file in reversed(lake_.files(lake.HISTORY)):
        for _, batch in lake_.batches(lake.HISTORY, ("queue",), [file]):
            if pc.any(pc.equal(batch["queue"], queue)).as_py():
                return file.dt
    return None


def read_queue(
    lake_: LocalLake, queue: str, *, from_dt: str, to_dt: str, most: int = MAX_MESSAGES
) -> RecordedQueue:
    """Days from `from_dt` to `to_dt`, both inclusive.

    Raises PipelineStopped if there are too many messages.
    """
    from_at, to_at = lake.midnight_of(from_dt), lake.midnight_of(to_dt) + DAY
    days = from_dt, lake.dt_of(lake.midnight_of(to_dt) + MAX_DAYS_LATER * DAY)
    endings: list[Row] = []
    used = {FAIRNESS} if _is_fair(lake_, queue) else set()
    for row in _rows(lake_, lake.HISTORY, _ENDINGS, queue, days):
        if row["first_leased_at"] is None or row["sent_at"] >= to_at:
            continue  # never claimed: no work; or sent later
        if row["first_leased_at"] < from_at:
            continue  # another day's
        if row.pop("group_key") is not None:
            used.add(GROUPS)
        if row.pop("route") is not None:
            used.add(CIRCUITS)
        endings.append(row)
        if len(endings) > most:
            raise PipelineStopped(
                f"queue {queue!r} has more than {most} messages from {from_dt} to {to_dt}; "
                "select fewer days with --from and --to",
                TOO_LARGE,
            )
    attempts = _attempts(lake_, queue, days, {row["message_no"] for row in endings})
    recorded = _pair_attempts(endings, attempts, from_at=from_at, to_at=to_at)
    return msgspec.structs.replace(recorded, not_simulated=sorted(used))


def _pair_attempts(
    endings: list[Row], attempts: dict[int, list[Row]], *, from_at: int, to_at: int
) -> RecordedQueue:
    messages, waits, spans = [], [], []
    ended: dict[int, int] = {}  # the last lease of an earlier ending
    for row in sorted(endings, key=itemgetter("finished_at")):
        number, last = row["message_no"], row["lease_no"]
        since = ended.get(number)
        ended[number] = last
        own = [a for a in attempts.get(number, ()) if (since or 0) < a["lease_no"] <= last]
        leases = _leases(row, own)
        if since is not None:
            # Nothing records when it was redriven: it arrives when it was claimed again.
            arrived_at = leases[0]["leased_at"]
        else:
            arrived_at = max(row["sent_at"], from_at)
        if arrived_at >= to_at:
            continue
        messages.append(RecordedMessage(arrived_at, _recorded_attempts(leases), row["priority"]))
        waits.append(leases[0]["leased_at"] - arrived_at)
        spans += [(lease["leased_at"], lease["ended_at"]) for lease in leases]
    return RecordedQueue(
        from_at=from_at,
        to_at=to_at,
        messages=sorted(messages, key=attrgetter("at")),
        wait=waits_of(waits),
        slots=peak_of(spans),
        not_simulated=[],
    )


def _leases(ending: Row, attempts: list[Row]) -> list[Row]:
    """All leases of a message in order; the last one may be known only by the ending."""
    leases = sorted(attempts, key=itemgetter("lease_no"))
    if not leases or leases[-1]["lease_no"] != ending["lease_no"]:
        leases.append(
            {
                "leased_at": ending["leased_at"],
                "ended_at": max(ending["finished_at"], ending["leased_at"]),
                "end": AttemptEnd.FAILED if ending["outcome"] == "dead" else AttemptEnd.DONE,
            }
        )
    return leases


def _recorded_attempts(leases: list[Row]) -> tuple[RecordedAttempt, ...]:
    pauses = [max(0, after["leased_at"] - before["ended_at"]) for before, after in pairwise(leases)]
    return tuple(
        RecordedAttempt(lease["ended_at"] - lease["leased_at"], lease["end"], pause_ms)
        for lease, pause_ms in zip(leases, [*pauses, 0], strict=True)
    )


def _attempts(
    lake_: LocalLake, queue: str, days: tuple[str, str], numbers: set[int]
) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in _rows(lake_, lake.ATTEMPTS, _ATTEMPTS, queue, days):
        if row["message_no"] in numbers and row["leased_at"] is not None:
            is_failure = row.pop("outcome") in FAILURES
            row["end"] = AttemptEnd.FAILED if is_failure else AttemptEnd.RETURNED
            found.setdefault(row["message_no"], []).append(row)
    return found


def _rows(
    lake_: LocalLake,
    table: LakeTable,
    columns: tuple[str, ...],
    queue: str,
    days: tuple[str, str],
) -> Iterator[Row]:
    first, last = days
    files = [file for file in lake_.files(table) if first <= file.dt <= last]
    for _, batch in lake_.batches(table, (*columns, "queue"), files):
        mine = batch.filter(pc.equal(batch["queue"], pa.scalar(queue)))
        yield from mine.select(columns).to_pylist()


def _is_fair(lake_: LocalLake, queue: str) -> bool:
    """True if the queue shared its workers fairly between groups at its latest snapshot."""
    for file in reversed(lake_.files(lake.QUEUES)):
        for _, batch in lake_.batches(lake.QUEUES, ("queue", "settings"), [file]):
            for row in batch.filter(pc.equal(batch["queue"], queue)).to_pylist():
                return bool(msgspec.json.decode(row["settings"]).get("is_fair"))
    return False
