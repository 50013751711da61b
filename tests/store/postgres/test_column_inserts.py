"""Many rows in one statement by columns: what rows share is sent once, the rest as arrays."""

import pytest
from msgspec.structs import replace

from penstock.domain.errors import InvalidRequest
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.lifecycle import Content, State
from penstock.ports.store import Claim, Sent
from penstock.store.postgres.connection import PostgresDatabase
from penstock.store.postgres.statements import MIN_BY_COLUMNS, ColumnInsert, many_rows
from penstock.store.queries import Queries
from tests.clocks import NOON
from tests.factories import a_new_message
from tests.store.driver import WAIT_S

ODD = ("NULL", "null", "{a,b}", '"quoted"', "\\", 'a\\"b', " padded ", "a,b", "\u20ac\n\t", "'x'")
TEXT, BIGINT, INTEGER = 25, 20, 23
INSERT = "INSERT INTO t (a, b, c, d, z, e) VALUES (:a, :b, :c, :d, 0, :e) ON CONFLICT DO NOTHING"
TYPES = [BIGINT, TEXT, TEXT, INTEGER, BIGINT]


def column_insert() -> ColumnInsert:
    return ColumnInsert(INSERT, TYPES, select=Queries("postgres").text("inserts.by_columns"))


def test_values_that_differ_arrive_as_they_were_sent(driver):
    mail = driver.queue()
    due = [None, NOON + 5, None, NOON + 7, *[None] * (len(ODD) - 4)]
    new = [
        a_new_message(mail, kind=kind, due_at=due_at, body=f'"{n}"')
        for n, (kind, due_at) in enumerate(zip(ODD, due, strict=True))
    ]

    answers = driver.store.send(new).result(WAIT_S)

    assert all(isinstance(answer, Sent) for answer in answers)
    stored = {m.id: m for state in (State.READY, State.WAITING) for m in driver.browse(mail, state)}
    assert [stored[n.message.id].kind for n in new] == list(ODD)
    assert [stored[n.message.id].due_at for n in new] == [n.message.due_at for n in new]


def test_rows_without_a_value_beside_rows_with_one_keep_it_empty(driver):
    mail = driver.queue()
    kinds = ["a", None] * MIN_BY_COLUMNS
    limits = [None, 3] * MIN_BY_COLUMNS
    new = [
        a_new_message(mail, kind=kind, max_attempts=most)
        for kind, most in zip(kinds, limits, strict=True)
    ]

    driver.store.send(new).result(WAIT_S)

    wanted = Claim(queue_no=mail.queue_no, now=NOON, limit=len(new))
    claimed = [m for m, _ in driver.store.claim(wanted).result(WAIT_S).messages]
    assert [(m.kind, m.max_attempts) for m in claimed] == list(zip(kinds, limits, strict=True))


def test_a_batch_with_a_text_that_postgresql_cannot_store_is_refused(driver):
    mail = driver.queue()
    new = [a_new_message(mail) for _ in range(MIN_BY_COLUMNS)]
    new.append(NewMessage(replace(a_new_message(mail).message, kind="cut\0short"), Content('"x"')))

    with pytest.raises(InvalidRequest, match="NUL"):
        driver.store.send(new).result(WAIT_S)

    assert driver.counts(mail).ready == 0


def test_what_all_rows_share_is_sent_once():
    rows = [(1, "x", f"c{n}", None, 5) for n in range(3)]

    [(text, params)] = column_insert().parts(rows) or []

    assert " ".join(text.decode().split()) == (
        "INSERT INTO t (a, b, c, d, z, e) SELECT $1, $2, c.v2, $4, 0, $5"
        " FROM unnest(CAST($3 AS text[])) AS c (v2) ON CONFLICT DO NOTHING"
    )
    assert params == [b"1", b"x", b'{"c0","c1","c2"}', None, b"5"]


def test_large_rows_are_sent_in_parts_that_keep_their_order():
    rows = [(n, "x", f"{n}" + "y" * 3_000_000, None, 5) for n in range(8)]

    parts = column_insert().parts(rows) or []

    assert [params[0] for _, params in parts] == [b"{0, 1, 2, 3}", b"{4, 5, 6, 7}"]
    assert all(params[2] is not None and len(params[2]) < 16 * 1024 * 1024 for _, params in parts)


@pytest.mark.parametrize(
    "rows",
    [
        [(n, str(n), str(n), n, 5) for n in range(9)],
        [(1, "x", "c", None, 5) for _ in range(9)],
    ],
    ids=["most columns differ", "none differs"],
)
def test_rows_that_share_little_or_everything_are_inserted_as_values(rows):
    assert column_insert().parts(rows) is None


def test_the_forms_of_a_statement_are_few_whatever_is_sent():
    insert = column_insert()
    alike = [1, "x", "c", 4, 5]

    def differing_in(*places: int) -> list[tuple]:
        return [tuple(v if i not in places else n for i, v in enumerate(alike)) for n in range(2)]

    pairs = [(i, j) for i in range(5) for j in range(i)]
    texts = {part[0] for pair in pairs for part in insert.parts(differing_in(*pair)) or []}

    assert len(texts) == 8 < len(pairs)


def test_the_server_reports_the_types_of_parameters(driver):
    def types(session) -> list[int]:
        db: PostgresDatabase = session.db
        return db._link.parameter_types(many_rows(db.text("messages.add"), 1))

    found = driver.write(types)

    assert found[:6] == [TEXT, BIGINT, BIGINT, BIGINT, BIGINT, TEXT]
