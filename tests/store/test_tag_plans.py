"""A page of messages by tag is read from the index of the tag."""

import apsw
import psycopg
import pytest

from penstock.store.queries import Queries

FILLED = {
    ":after_no": "0",
    ":due_from": "0",
    ":due_before": "9999999999999",
    ":limit": "100",
    ":tag1": "'x'",
    ":tag2": "'y'",
    ":queue_no": "1",
}


@pytest.fixture
def explain(backend, driver, request):
    """The plan of a query, with ten thousand other messages in the table."""
    queue = driver.queue()
    for _ in range(10):
        driver.send_many(queue, 1_000)
        driver.send_many(queue, 30, tags=("x", "y"))

    def sqlite(text: str) -> str:
        path = request.getfixturevalue("tmp_path") / "penstock.db"
        connection = apsw.Connection(str(path))
        try:
            return str(list(connection.execute(f"EXPLAIN QUERY PLAN {text}")))
        finally:
            connection.close()

    def postgres(text: str) -> str:
        url = request.getfixturevalue("renewable_database").url
        with psycopg.connect(url) as connection:
            connection.execute("ANALYZE message")
            # With a few hundred rows, sorting may be as cheap.
            connection.execute("SET enable_bitmapscan = off")
            return str(connection.execute(f"EXPLAIN {text}".encode()).fetchall())

    return sqlite if backend == "sqlite" else postgres


@pytest.mark.parametrize(
    "conditions",
    [
        ("tag1", "live"),
        ("tag2", "live"),
        ("tag1", "tag2", "queued"),
        ("tag2", "queue_no", "queued"),
        ("tag1", "leased"),
    ],
)
def test_a_page_is_read_from_the_index_of_its_tag_in_its_order(explain, backend, conditions):
    queries = Queries(backend)
    texts = [queries.text(f"tags.where_{name}") for name in conditions]
    text = queries.text("tags.find", conditions="\n".join(texts), lock="")
    for mark, value in FILLED.items():
        text = text.replace(mark, value)

    plan = explain(text)

    assert "message_by_tag" in plan
    assert "Seq Scan" not in plan
    assert "SCAN message" not in plan
    assert "Sort" not in plan
    assert "B-TREE" not in plan
