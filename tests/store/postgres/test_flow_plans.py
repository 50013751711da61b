"""Members are looked up by name in linear time, also if a flow grows faster than statistics."""

from __future__ import annotations

import psycopg
import pytest

from penstock.store.queries import Queries

SMALL_FLOWS = """
INSERT INTO flow_member (message_no, flow_no, id, name, queue_no, role, state, waits_for, handles,
                         failures, is_wanted)
SELECT n, n / 10, 'id' || n, 'name' || n % 10, 1, 'member', 'blocked', 0, 0, 0, 0
  FROM generate_series(1, 20000) AS n
"""


@pytest.mark.parametrize("query", ["flows.named", "flows.with_ids"])
def test_no_member_is_compared_with_all_that_are_wanted(migrated_url: str, query: str) -> None:
    text = Queries("postgres").text(query)
    text = text.replace(":flow_no", "100000").replace(":names", """'["a", "b"]'""")
    with psycopg.connect(migrated_url) as connection:
        connection.execute(SMALL_FLOWS)
        connection.execute("ANALYZE flow_member")

        plan = str(connection.execute(f"EXPLAIN {text}".encode()).fetchall())

    assert "Index Cond" in plan
    assert "ANY (" not in plan, plan
