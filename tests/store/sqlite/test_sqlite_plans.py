"""SQLite uses the intended indexes, however large the tables are."""

import re
from pathlib import Path

import pytest

from penstock.store.sqlite.connection import SqliteDatabase
from penstock.store.store import open_sqlite

WAYS = {
    "messages.claim": "message USING INDEX message_to_claim (queue_no=? AND is_blocked=?)",
    "queue_heads.claim_small": "message USING INDEX message_to_claim (queue_no=? AND is_blocked=?)",
    "queue_heads.size": "message USING INDEX message_to_claim (queue_no=? AND is_blocked=?)",
    "queues.claimable": "m USING COVERING INDEX message_to_claim (queue_no=? AND is_blocked=?)",
    "claims_by_kind.claim": (
        "f USING INDEX message_of_kind (queue_no=? AND kind=? AND is_blocked=?)"
    ),
    "group_limits.admitted": (
        "m USING COVERING INDEX message_let_through (queue_no=? AND group_key=?)"
    ),
    "group_limits.next_held_back": (
        "message USING COVERING INDEX message_held_back (queue_no=? AND group_key=?)"
    ),
    "rates.find": "p USING PRIMARY KEY (queue_no=? AND group_key=?)",
    "fair_positions.shares": "s USING PRIMARY KEY (queue_no=? AND priority=? AND group_key=?)",
    "dedup.release": "d USING PRIMARY KEY (queue_no=? AND dedup_key=?)",
    "circuits.old_samples": "circuit_sample USING COVERING INDEX circuit_sample_by_time"
    " (circuit_no=? AND is_failure=? AND at<?)",
    "circuits.known_samples": "circuit_sample USING PRIMARY KEY"
    " (circuit_no=? AND is_failure=? AND request_id=?)",
    "circuits.trim": "circuit_sample USING PRIMARY KEY"
    " (circuit_no=? AND is_failure=? AND request_id=?)",
    "circuits.oldest_samples": "circuit_sample USING COVERING INDEX circuit_sample_by_time"
    " (circuit_no=? AND is_failure=?)",
    "minute_counters.steps": "minute_counter USING INDEX sqlite_autoindex_minute_counter_1"
    " (queue_no=? AND minute_at>? AND minute_at<?)",
    "minute_counters.before": "minute_counter USING INDEX sqlite_autoindex_minute_counter_1"
    " (queue_no=? AND minute_at<?)",
    "minute_counters.first_at": "minute_counter USING COVERING INDEX"
    " sqlite_autoindex_minute_counter_1 (queue_no=?)",
    "minute_counters.oldest": "m USING INDEX message_to_claim (queue_no=? AND is_blocked=?)",
    "minute_counters.thin": "minute_counter USING INDEX minute_counter_by_time"
    " (minute_at>? AND minute_at<?)",
    "minute_counters.forget": "minute_counter USING INDEX minute_counter_by_time (minute_at<?)",
    "overview.suspects": "m USING INDEX message_to_claim (queue_no=? AND is_blocked=?)",
    "circuits.lock": "circuit USING INDEX sqlite_autoindex_circuit_1 (hash=?)",
}
LARGE = {"message", "dedup", "circuit", "circuit_sample", "minute_counter", "m", "f", "d", "p", "s"}
SMALL = {
    "overview.suspects": {"s"},
    "queues.claimable": {"s"},
}  # what such a name stands for: queues, not messages


@pytest.mark.parametrize("name", WAYS)
def test_a_search_is_by_the_index_that_was_made_for_it(tmp_path: Path, name: str) -> None:
    open_sqlite(tmp_path / "x.db").close()
    db = SqliteDatabase(tmp_path / "x.db")
    text = db.text(name)
    if name == "circuits.lock":  # a part of a query
        text = db.text("circuits.find", conditions=text)
    params = dict.fromkeys(re.findall(r":(\w+)", text))

    plan = [row[3] for row in db.connection.execute(f"EXPLAIN QUERY PLAN {text}", params)]
    db.close()

    assert f"SEARCH {WAYS[name]}" in plan
    assert [
        step
        for step in plan
        if re.match(rf"SCAN ({'|'.join(LARGE - SMALL.get(name, set()))})\b", step)
    ] == []
