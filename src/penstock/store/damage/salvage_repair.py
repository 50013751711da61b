"""Makes the copy of a damaged store consistent: nothing may wait for lost rows."""

from __future__ import annotations

import msgspec

from penstock.domain.queue.queue import QueueSettings
from penstock.store.commit.session import SqlSession
from penstock.store.damage.btree import Value
from penstock.store.damage.damage_map import queue_numbers
from penstock.store.damage.salvage_source import SalvageSource
from penstock.store.limits.group_limits import GroupLimits
from penstock.store.sqlite.connection import SqliteDatabase
from penstock.store.verbs.transaction_state import json_list

_WITHOUT_BODY = "its body cannot be read"
_WITHOUT_ROW = "its row cannot be read"


class LostMessage(msgspec.Struct, frozen=True):
    message_no: int
    id: str | None
    queue: str | None
    reason: str


def repair(
    db: SqliteDatabase, source: SalvageSource, *, now: int
) -> tuple[list[LostMessage], list[str]]:
    """Repair the copy; returns the lost messages, and what was changed because of them."""
    session = SqlSession(db)
    db.begin(durable=True)
    try:
        session.transaction.open()
        made = _make_queues(db, now)
        names: dict[int, str] = dict(db.rows("salvage.queues"))
        lost = _without_row(db, source, names) + _without_body(db, names)
        done = [*made, *_release_keys(db), *_unblock(session, now=now), *_count(db)]
        session.transaction.close()
        db.commit()
    except BaseException:
        db.rollback()
        raise
    return lost, done


def _make_queues(db: SqliteDatabase, now: int) -> list[str]:
    """Create queues for messages whose queue cannot be read, with new names."""
    settings = msgspec.json.encode(QueueSettings()).decode()
    done = []
    for (queue_no,) in db.rows("salvage.queues_missing"):
        name = f"salvaged-{queue_no}"
        params = {"queue_no": queue_no, "name": name, "settings": settings, "now": now}
        db.run("salvage.add_queue", params)
        done.append(f"queue {queue_no} is now called {name} and has default settings")
    return done


def _without_row(
    db: SqliteDatabase, source: SalvageSource, names: dict[int, str]
) -> list[LostMessage]:
    """Messages whose row is lost; their ids and queues may still be in indexes."""
    if "message" not in source.gaps and not source.image.lost_frames:
        return []
    kept = {no for (no,) in db.rows("salvage.message_nos")}
    ids = {
        row[-1]: row[0] for row in source.index_rows("message_by_id") if isinstance(row[-1], int)
    }
    queue_nos = queue_numbers(source)
    missing = sorted((ids.keys() | queue_nos.keys()) - kept)
    return [
        LostMessage(
            no,
            str(ids[no]) if no in ids else None,
            _name(names, queue_nos.get(no)),
            _WITHOUT_ROW,
        )
        for no in missing
    ]


def _without_body(db: SqliteDatabase, names: dict[int, str]) -> list[LostMessage]:
    """Messages whose body is lost; they are removed."""
    days = {day for (day,) in db.rows("partitions.days")}
    lost: list[LostMessage] = []
    for (day,) in db.rows("salvage.body_days"):
        query = "salvage.without_body" if day in days else "salvage.of_day"
        for no, message_id, queue_no in db.rows(query, {"day": day}, day=day):
            lost.append(LostMessage(no, message_id, _name(names, queue_no), _WITHOUT_BODY))
    for message in lost:
        db.run("salvage.remove", {"message_no": message.message_no})
    return lost


def _release_keys(db: SqliteDatabase) -> list[str]:
    """Release dedup keys of lost messages, so that a new send with the key is accepted."""
    days = [day for (day,) in db.rows("partitions.days")]
    ended = {found for day in days for (found,) in db.rows("salvage.ended_ids", day=day)}
    done = []
    for queue_no, key, message_id in db.rows("salvage.dedup_of_nothing"):
        if message_id not in ended:
            db.run("salvage.release_key", {"queue_no": queue_no, "dedup_key": key})
            done.append(f"dedup key {key!r} of the lost message {message_id} is free again")
    return done


def _unblock(session: SqlSession, *, now: int) -> list[str]:
    """Unblock groups that waited for a lost message."""
    db, done = session.db, []
    stuck = [(no, group) for no, group in db.rows("group_limits.stuck")]
    if stuck:
        db.rows("messages.unblock", {"groups": json_list(stuck)})
        done.append(f"{len(stuck)} groups no longer wait for a lost message")
    openings = GroupLimits(session.transaction)
    for (queue_no,) in db.rows("salvage.gated"):
        openings.reapply(queue_no, now=now)
    return done


def _count(db: SqliteDatabase) -> list[str]:
    """Recount the messages; lost ones count as never sent."""
    wrong = db.rows("salvage.miscounted")
    if wrong:
        db.run("salvage.add_counters")
        db.run("salvage.count_again")
        db.run("salvage.balance")
    return [f"the counters of {len(wrong)} queues were corrected"] if wrong else []


def _name(names: dict[int, str], queue_no: Value) -> str | None:
    return names.get(queue_no) if isinstance(queue_no, int) else None
