"""Messages are restored from the lake as they were, each once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from penstock.domain.lake import layout as lake
from penstock.domain.lake.layout import Range
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.domain.message.step import Signal
from penstock.services.lake import Restored, RestoreService
from tests.factories import an_id, some_settings
from tests.store.counter_checks import check_counters
from tests.store.driver import StoreDriver

NAMES = [column.name for column in lake.SNAPSHOTS.columns]


STEPS = (
    '[{"name":"charge","kind":"step","at":5,"outcome":{"cents":1},"lease_no":1,"took_ms":7},'
    '{"name":"sleep","kind":"sleep","at":9,"outcome":{"sleep_ms":3},"lease_no":2,"took_ms":3},'
    '{"name":"signal go","kind":"wait","at":11,"lease_no":4,"signal":"go","until_at":90}]'
)


@pytest.fixture
def restoring(store_driver: StoreDriver) -> RestoreService:
    return RestoreService(store_driver.store, store_driver.clock)


@pytest.fixture(autouse=True)
def books_balance(store_driver: StoreDriver) -> Iterator[None]:
    yield
    check_counters(store_driver)


def put(restoring: RestoreService, *rows: dict[str, Any]) -> Restored:
    return restoring.put(rows).result()


def a_row(store_driver: StoreDriver, **given: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(NAMES)
    row |= {
        "id": an_id(), "queue": "mail", "state": "ready", "priority": 0,
        "sent_at": store_driver.now - 9, "due_at": store_driver.now - 9,
        "attempts": 0, "failures": 0, "crashes": 0, "lease_no": 0,
        "retries_timeouts": False, "size": 3, "body": '"b"',
    }  # fmt: skip
    store_driver.sent_ids.append(row["id"])
    return row | given


def snapshot(store_driver: StoreDriver) -> list[dict[str, Any]]:
    rows = store_driver.read(
        lambda s: s.archive.live_page(Range(0, 2**60), limit=1_000, taken_at=store_driver.now)
    )
    return [dict(zip(NAMES, row, strict=True)) for row in rows]


def test_a_message_is_as_it_was(store_driver, restoring):
    store_driver.queue("mail")
    row = a_row(
        store_driver, state="waiting", due_at=store_driver.now + 5_000, kind="letter",
        entity_id="e", tag1="a", tag2="b", group_key="g", priority=3,
        expires_at=store_driver.now + 9_000, max_attempts=7, attempts=2, failures=1, crashes=1,
        lease_no=4, first_leased_at=store_driver.now - 5, last_error="broken", timeout_ms=100,
        retries_timeouts=True, route="r", attributes='{"x":"y"}', trace="t", dedup_key="k",
        dedup_until="ended", recorded_steps=STEPS,
    )  # fmt: skip

    assert put(restoring, row) == Restored(restored=1)

    [back] = snapshot(store_driver)
    same = set(NAMES) - {"message_no", "order_no", "queue_no", "taken_at"}
    assert {name: back[name] for name in same} == {name: row[name] for name in same}


def test_the_same_again_brings_nothing(store_driver, restoring):
    mail = store_driver.queue("mail")
    rows = [a_row(store_driver) for _ in range(3)]
    assert put(restoring, *rows[:2]).restored == 2
    store_driver.complete(store_driver.claim(mail)[0])

    again = put(restoring, *rows)

    assert (again.restored, again.known) == (1, 2), "also of the one that has ended since"
    assert store_driver.counts(mail).ready == 2


def test_the_dead_are_dead_again(store_driver, restoring):
    mail = store_driver.queue("mail")
    put(restoring, a_row(store_driver, state="dead", reason="broken", attempts=3, failures=3))
    [dead] = store_driver.browse(mail, State.DEAD)
    assert (dead.reason, dead.attempts, dead.failures) == ("broken", 3, 3)
    assert store_driver.claim_ids(mail) == []


def test_attempts_count_on(store_driver, restoring):
    mail = store_driver.queue("mail", max_attempts=3)
    put(restoring, a_row(store_driver, attempts=2, failures=2, lease_no=2))
    [held] = store_driver.claim(mail)
    assert (held.attempts, held.lease_no) == (3, 3)
    store_driver.act(Verb.FAIL, held)
    assert store_driver.counts(mail).dead == 1


def test_a_key_that_is_held_is_held_again(store_driver, restoring):
    mail = store_driver.queue("mail")
    put(restoring, a_row(store_driver, dedup_key="k", dedup_until="ended"))
    put(restoring, a_row(store_driver, dedup_key="w"))
    [answer] = store_driver.submit_send(mail, dedup_key="k").result()
    assert answer.is_duplicate
    assert store_driver.send(mail, dedup_key="w"), "a window is long over"


def test_messages_without_a_body_or_room_are_reported(store_driver, restoring):
    store_driver.queue("mail", max_messages=1)
    rows = [a_row(store_driver), a_row(store_driver), a_row(store_driver, body=None)]
    done = put(restoring, *rows)
    assert (done.restored, done.without_body) == (1, 1)
    [(message_id, why)] = done.refused
    assert (message_id, "queue_full" in why) == (rows[1]["id"], True)


def test_queues_are_made_with_the_settings_they_had(store_driver, restoring):
    text = msgspec.json.encode(some_settings(max_attempts=9)).decode()
    store_driver.queue("old", max_attempts=1)
    assert restoring.make_queues({"old": text, "new": text}) == 1

    settings = [store_driver.read(lambda s, n=n: s.queues.find(n)).settings for n in ("old", "new")]
    assert [s.max_attempts for s in settings] == [1, 9]
    put(restoring, a_row(store_driver, queue="unheard-of"))
    assert store_driver.read(lambda s: s.queues.find("unheard-of")) is not None


def test_groups_keep_their_order(store_driver, restoring):
    mail = store_driver.queue("mail", ordering="group")
    rows = [a_row(store_driver, group_key="g") for _ in range(3)]
    put(restoring, *rows)
    seen = []
    for _ in rows:
        [held] = store_driver.claim(mail, 10)
        seen.append(held.id)
        store_driver.complete(held)
    assert seen == [row["id"] for row in rows]


def test_a_restored_message_that_waits_for_a_signal_is_woken_by_it(store_driver, restoring):
    mail = store_driver.queue("mail")
    waits = a_row(
        store_driver, state="waiting", due_at=store_driver.now + 5_000, lease_no=4,
        recorded_steps=STEPS,
    )  # fmt: skip
    put(restoring, waits)
    assert store_driver.claim(mail) == []

    store_driver.write(lambda s: s.signals.send(Signal("go", "1", store_driver.now, 10**15)))

    [held] = store_driver.claim(mail)
    assert held.id == waits["id"]


def test_a_message_that_waits_for_a_signal_of_this_store_is_due(store_driver, restoring):
    mail = store_driver.queue("mail")
    store_driver.write(lambda s: s.signals.send(Signal("go", "1", store_driver.now, 10**15)))

    row = a_row(store_driver, state="waiting", due_at=store_driver.now + 5_000, lease_no=4)
    put(restoring, row | {"recorded_steps": STEPS})

    [held] = store_driver.claim(mail)
    assert held.id == row["id"]


def test_a_member_of_a_flow_is_restored_as_a_message_of_its_own(store_driver, restoring):
    mail = store_driver.queue("mail")

    done = put(restoring, a_row(store_driver, flow_no=7, flow_id="f", member_name="a"))

    assert (done.restored, done.of_flows) == (1, 1)
    [back] = snapshot(store_driver)
    assert (back["flow_no"], back["flow_id"], back["member_name"]) == (None, None, None)
    store_driver.complete(store_driver.claim(mail)[0])
