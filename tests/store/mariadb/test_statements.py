"""Every query that the store may run on MariaDB is one that MariaDB understands."""

import re

import pytest

from penstock.domain.errors import PenstockError
from penstock.store.mariadb.connection import MariadbDatabase
from penstock.store.mariadb.statements import insert_texts, literal, lock_slots, slot_of, statements
from penstock.store.mariadb.store import make_day
from penstock.store.mariadb.url import parse

DAY = 20_000
FILL = {
    "day": DAY,
    "to_day": DAY,
    "conditions": "",
    "lock": "",
    "order": "message_no",
    "begin": "",
    "result": "NULL",
    "table": "queue",
    "names": "name",
    "params": "1",
}
EXPLAINED = re.compile(r"SELECT|WITH|INSERT|UPDATE|DELETE")
NOT_RUN = {"queue_heads.claim_small"}  # for a store in the same process
LISTS = {
    "groups": '[[1,"a"]]',
    "held": "[[1,1,1]]",
    "heads": '[[1,"a",1,1]]',
    "ids": '["a"]',
    "keys": '[[1,"a","b"]]',
    "kinds": '["a","b"]',
    "names": '["a"]',
    "queue_nos": "[1]",
    "shares": '[[1,1,"a"]]',
    "weights": '{"a":2}',
}


@pytest.fixture
def database(mariadb_url):
    make_day(parse(mariadb_url), DAY)
    db = MariadbDatabase(parse(mariadb_url), guarded=False)
    yield db
    db.close()


def test_every_query_is_understood(database):
    wrong = {}
    for name in names(database):
        text = database.text(name, **FILL)
        if not EXPLAINED.match(text):
            continue  # a part of another query
        lists = dict.fromkeys(re.findall(r"::(\w+)", text), "[1]")
        params = dict.fromkeys(re.findall(r":(\w+)", text), 1) | lists
        params |= LISTS
        found = {
            column: [1]
            for columns in re.findall(r":\^([\w$]+)", text)
            for column in columns.split("$")
        }
        for statement in statements(text):
            try:
                database._link.run(b"EXPLAIN " + statement.text(params, found))
            except Exception as error:
                wrong[name] = str(error)

    assert wrong == {}


def names(database: MariadbDatabase) -> list[str]:
    return [name for name in database._queries.names() if name not in NOT_RUN]


@pytest.mark.parametrize(
    "text",
    ["it's", "back\\slash", "new\nline", "\0", "–– 🐟", "'; DROP TABLE message; --", ":name"],
)
def test_texts_arrive_as_they_are(database, text):
    database.rows("session.process")
    [back] = database._link.run(f"SELECT {literal(text)}".encode())

    assert back.rows == [(text,)]


def test_a_group_has_the_same_slot_in_python_and_in_sql(database):
    groups = '[[1,"a"],[2,"🐟"],[3,"it\'s"]]'
    with_slots = statements(
        "SELECT CRC32(CONCAT(g.c0, '/', g.c1)) & 2047 FROM JSON_TABLE(:groups, '$[*]' COLUMNS ("
        " c0 bigint PATH '$[0]', c1 varchar(700) PATH '$[1]')) AS g"
    )[0]
    [back] = database._link.run(with_slots.text({"groups": groups}, {}))

    assert [slot for (slot,) in back.rows] == [
        slot_of(g) for g in ([1, "a"], [2, "🐟"], [3, "it's"])
    ]


def test_slots_are_locked_in_ascending_order():
    slots = lock_slots('[["7","b"],[1,"a"],[2,"c"],[1,"a"]]').split(", ")

    assert slots == sorted(slots, key=int)
    assert len(slots) == 3


def test_an_insert_of_many_large_rows_is_split():
    text = "INSERT INTO body_1 (message_no, body) VALUES (:message_no, :body)"

    texts = insert_texts(text, [(n, "x" * 1_000_000) for n in range(5)])

    assert len(texts) == 5
    assert max(map(len, texts)) < 4 * 1024 * 1024


def test_a_statement_that_failed_outside_of_a_transaction_does_not_fail_the_next_one(database):
    with pytest.raises(PenstockError, match="SQL syntax"):
        database.script("NO STATEMENT")

    database.begin(durable=True)

    assert database.rows("partitions.days") == [(DAY,)]
    database.rollback()
