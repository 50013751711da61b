"""Messages of a queue by kind, tag, group and more; scans a limited number per page."""

from __future__ import annotations

from typing import Any

from penstock.domain.message.selection import Pick
from penstock.ports.store import Browse, QueueStretch
from penstock.store.database import Database, Row
from penstock.store.verbs.transaction_state import message_of

FIRST = (-(2**62), -(2**62), -(2**62), -(2**62))
_LABELS = ("kind", "tag", "group", "entity_id")


def look_through(db: Database, wanted: Browse, pick: Pick, *, length: int) -> QueueStretch:
    after1, after2, after3, after4 = wanted.after or FIRST
    params: dict[str, Any] = {
        "queue_no": wanted.queue_no,
        "limit": wanted.limit,
        "length": length,
        "after1": after1,
        "after2": after2,
        "after3": after3,
        "after4": after4,
        "sent_from": pick.sent_from,
        "sent_before": pick.sent_before,
    }
    begin = db.text(f"selection.begin_{wanted.state}")
    order = db.text(f"selection.order_{wanted.state}")
    end = db.rows("selection.end", params, begin=begin, order=order)
    params |= {name: v for name in _LABELS if (v := getattr(pick, name)) is not None}
    conditions = "\n   ".join(
        db.text(f"selection.where_{name}") for name in _LABELS if name in params
    )
    rows = db.rows("selection.stretch", params, begin=begin, order=order, conditions=conditions)
    return QueueStretch(list(map(message_of, rows)), _place(end[0]) if end else None)


def _place(numbers: Row) -> tuple[int, int, int, int]:
    first, second, third, fourth = (*numbers, 0, 0, 0)[:4]
    return int(first), int(second), int(third), int(fourth)
