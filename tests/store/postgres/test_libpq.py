"""The connection to PostgreSQL: prepared statements, odd texts, large batches, stable plans."""

import re

import pytest
from msgspec.structs import replace

from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.lifecycle import Content, State
from penstock.ports.store import Claim, Sent
from penstock.store.postgres.statements import encode, statement
from tests.clocks import NOON
from tests.factories import a_new_message
from tests.store.counter_checks import check_counters
from tests.store.driver import WAIT_S
from tests.store.postgres.helpers import by_hand

HOT = ("claim", "fallen_due", "expired", "next_due", "complete", "by_no", "remove", "unblock")
OTHERS = (
    "by_id",
    "live_groups",
    "any_of",
    "unlocked_by_no",
    "buried",
    "dead_letters",
    "browse_ready",
    "oldest_ready",
    "claims_by_kind.claim",
    "claims_by_kind.free_heads",
    "dedup.release",
    "moves.ordinary",
    "moves.homeless",
    "group_limits.admitted",
    "group_limits.next_held_back",
)
GROWING = ("Seq Scan on message", "Hash Cond", "Merge Cond", "Join Filter", "BitmapAnd")


@pytest.mark.parametrize("options", ["?prepare=off", "?prepare=on&application_name=x"])
def test_it_works_with_and_without_prepared_statements(open_one, options):
    driver = open_one(options)
    mail = driver.queue()
    driver.send_many(mail, 70)

    for m in driver.claim(mail, 100):
        driver.complete(m)

    assert driver.counts(mail).done_total == 70
    check_counters(driver)


def test_prepared_statements_that_a_proxy_loses_are_not_used_again(driver):
    mail = driver.queue()
    driver.send(mail)
    # Like another server connection behind a proxy.
    driver.write(lambda s: s.db.script("DEALLOCATE ALL"))

    driver.send(mail)

    assert driver.counts(mail).ready == 2


def test_a_text_that_postgresql_cannot_store_is_refused_and_affects_only_its_sender(driver):
    mail = driver.queue()
    whole, cut, half = (
        NewMessage(replace(a_new_message(mail).message, kind=kind), Content('"x"'))
        for kind in ("whole", "cut\0short", "half \ud800")
    )
    with driver.together():
        good, bad, worse = (driver.store.send([new]) for new in (whole, cut, half))

    assert isinstance(good.result(WAIT_S)[0], Sent)
    for ticket in (bad, worse):
        with pytest.raises(InvalidRequest):
            ticket.result(WAIT_S)
    assert [m.kind for m in driver.browse(mail, State.READY)] == ["whole"]


def test_colons_and_quotes_in_texts_are_only_texts(driver):
    mail = driver.queue()
    odd = "a ':name' 100% $1 \\ \"b\" {list:x} -- c ; \u20ac"
    driver.send(mail, kind=odd, group=odd, body=f'"{"x" * 100_000}"')

    [(message, content)] = driver.submit_claim(mail).result(WAIT_S).messages

    assert (message.kind, message.group) == (odd, odd)
    assert len(content.body) == 100_002


def test_a_batch_of_large_bodies_is_sent_in_parts(driver):
    mail = driver.queue()
    bodies = [f'"{n}{"y" * 1_000_000}"' for n in range(30)]
    new = [a_new_message(mail, body=body) for body in bodies]

    answers = driver.store.send(new).result(WAIT_S)

    assert all(isinstance(answer, Sent) for answer in answers)
    wanted = Claim(queue_no=mail.queue_no, now=NOON, limit=40, max_bytes=2**31)
    claimed = driver.store.claim(wanted).result(WAIT_S)
    assert [content.body for _, content in claimed.messages] == bodies


@pytest.mark.parametrize("name", [*HOT, *OTHERS])
def test_plans_do_not_depend_on_how_full_the_tables_were(driver, postgres_url, name):
    """With few rows the server would prefer to read them all, and keep that plan with a million."""
    mail = driver.queue()
    driver.send_many(mail, 3)
    by_hand(postgres_url, "ANALYZE")
    instants = ("now", "due_at", "after1", "after2", "after3", "after4")
    params: dict[str, object] = dict.fromkeys(instants, NOON)
    params |= {"queue_no": mail.queue_no, "limit": 10, "claimed_by": None, "id": "x"}
    params |= {"max_bytes": 1_000_000, "due_from": 0}
    params |= {"is_blocked": 0, "group_key": "a"}
    params |= {"before_no": 10, "any_home": 0, "kinds": '["a", "b"]'}
    params |= {"keys": '[[1, "a", "x"]]', "no_end": 2**62}
    params |= {"message_nos": "[1, 2]", "held": "[[1, 1, 1]]", "groups": '[[1, "a"]]'}

    def plan(session) -> str:
        full_name = name if "." in name else f"messages.{name}"
        marks = {
            "lock": session.db.text("messages.skip_locked"),
            "result": session.db.text("messages.no_result"),
        }
        said = statement(session.db.text(full_name, day=NOON // DAY, **marks))
        values = encode([params[name] for name in said.names])
        rows = session.db._link.send(b"EXPLAIN " + said.text, values).rows()
        return "\n".join(line for (line,) in rows)

    plan_text = driver.write(plan)
    assert [way for way in GROWING if way in plan_text] == [], plan_text
    if name in (
        "claim",
        "claims_by_kind.claim",
        "fallen_due",
        "expired",
        "next_due",
        "moves.ordinary",
    ):
        assert "Sort Key: message" not in plan_text, plan_text
    # Every index is searched, not read from its beginning.
    scans = re.findall(r"Index (?:Only )?Scan (?:using|on)[^\n]*\n *([^\n]*)", plan_text)
    assert all(line.startswith("Index Cond") for line in scans), plan_text
