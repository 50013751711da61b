"""Claims of some kinds by several nodes: none waits, none comes short, other kinds are not read."""

import psycopg
import pytest

from penstock.domain.limits import DAY
from penstock.store.queries import Queries
from tests.store.postgres.helpers import at_once, by_hand

LOCK_ROW = "SELECT 1 FROM message WHERE id = '{}' FOR UPDATE"


@pytest.fixture
def mail(driver):
    return driver.queue("mail", lease_ms=DAY)


def take(driver, queue, *kinds, limit=10):
    return [m.id for m in driver.claim(queue, limit, kinds=kinds)]


def test_a_locked_message_is_skipped(driver, mail, postgres_url):
    a1, a2 = (driver.send(mail, kind="a") for _ in range(2))

    with psycopg.connect(postgres_url) as other:
        other.execute(LOCK_ROW.format(a1).encode())

        assert take(driver, mail, "a", limit=1) == [a2]


def test_if_the_only_message_of_a_kind_is_locked_another_kind_is_claimed(
    driver, mail, postgres_url
):
    a1, b1, b2 = (driver.send(mail, kind=kind) for kind in "abb")

    with psycopg.connect(postgres_url) as other:
        other.execute(LOCK_ROW.format(a1).encode())

        assert take(driver, mail, "a", "b", limit=1) == [b1]

    assert take(driver, mail, "a", "b") == [a1, b2]


def test_messages_that_were_locked_and_not_needed_are_announced(driver, mail, postgres_url):
    a1, b1, _ = (driver.send(mail, kind=kind) for kind in "abc")
    received = []
    driver.store.listen(lambda woken: received.append(dict(woken)))

    with psycopg.connect(postgres_url) as other:
        other.execute(LOCK_ROW.format(a1).encode())
        assert take(driver, mail, "a", "b", "c", limit=1) == [b1]

    assert received == [{mail.queue_no: 1}]


def test_many_simultaneous_claims_share_all_messages(driver, mail):
    ids = {driver.send(mail, kind=kind) for _ in range(30) for kind in "abc"}

    def claim_all():
        mine = []
        while taken := take(driver, mail, "a", "b", "c", limit=4):
            mine += taken
        return mine

    shares = at_once(*[claim_all] * 4)

    given = [message_id for share in shares for message_id in share]
    assert len(given) == len(set(given))
    assert set(given) | set(take(driver, mail, "a", "b", "c", limit=100)) == ids


@pytest.mark.parametrize("name", ["claims_by_kind.claim", "claims_by_kind.free_heads"])
def test_a_backlog_of_other_kinds_is_not_read(driver, mail, postgres_url, name):
    for _ in range(20):
        driver.send_many(mail, 500, kind="other")
    driver.send_many(mail, 3, kind="wanted")
    by_hand(postgres_url, "ANALYZE message")
    text = Queries("postgres").text(name)
    values = {
        "kinds": """'["wanted", "none"]'""",
        "queue_no": str(mail.queue_no),
        "now": str(driver.now),
        "due_at": str(driver.now + 5),
        "claimed_by": "NULL",
        "limit": "10",
        "max_bytes": "1000000",
    }
    for parameter, value in values.items():
        text = text.replace(f":{parameter}", value)

    with psycopg.connect(postgres_url) as connection:
        connection.execute(b"SET enable_seqscan = off")
        rows = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}".encode())
        [(plan,)] = rows.fetchall()
        connection.rollback()

    [received] = plan
    assert touched(received["Plan"]) < 200


def touched(plan: dict) -> int:
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])
