"""Defects of AweQ that are fixed here; docs/aweq.md lists them too."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from penstock.domain.limits import HOUR
from tests.clocks import ManualClock
from tests.edge.aweq.client import AweqClient
from tests.edge.aweq.conftest import MakeClient
from tests.edge.conftest import MakeServer

pytestmark = pytest.mark.both_stores

REFUSED_COUNTS = [
    "0",
    "-1",
    "-7",
    "three",
    "3x",
    "1.5",
    "1e3",
    "%202",
    "1001",
    "9" * 30,
    "2&count=3",
]


@pytest.mark.parametrize("count", REFUSED_COUNTS)
def test_an_invalid_count_is_refused_and_no_message_is_claimed(
    aweq: AweqClient, count: str
) -> None:
    aweq.send("one")

    answer = aweq.http.get(f"/receive-message?count={count}")

    assert answer.status_code == 400
    assert answer.text == "Count must be a whole number from 1 to 1000."
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert aweq.lengths() == (1, 0)


def test_the_most_that_can_be_received_at_once_is_a_setting(
    make_server: MakeServer,
) -> None:
    aweq = AweqClient(make_server(limits={"max_claim": 2}).url)
    for number in range(3):
        aweq.send(f"job {number}")

    assert aweq.http.get("/receive-message?count=3").status_code == 400
    assert aweq.texts(2) == ["job 0", "job 1"]
    aweq.close()


def test_a_late_delete_does_not_end_the_checkout_of_another_consumer(
    make_client: MakeClient, clock: ManualClock
) -> None:
    early, late = make_client("early"), make_client("late")
    key = early.send("job")
    assert early.texts() == ["job"]
    clock.advance(seconds=120)
    assert late.texts() == ["job"]

    assert not early.delete(key)

    assert early.lengths() == (0, 1)
    assert late.delete(key)
    assert late.lengths() == (0, 0)


def test_consumers_without_a_name_are_identified_by_their_address(
    make_client: MakeClient, clock: ManualClock
) -> None:
    early, late = make_client(address="127.0.0.2"), make_client(address="127.0.0.3")
    key = early.send("job")
    assert early.texts() == ["job"]
    clock.advance(seconds=120)
    assert late.texts() == ["job"]

    assert not early.delete(key)
    assert late.delete(key)


def test_a_name_and_an_address_of_the_same_spelling_are_two_consumers(
    make_client: MakeClient, clock: ManualClock
) -> None:
    unnamed, named = make_client(address="127.0.0.2"), make_client("127.0.0.2")
    key = named.send("job")
    named.texts()
    clock.advance(seconds=120)
    unnamed.texts()

    assert not named.delete(key)


def test_a_message_delivered_once_is_deleted_by_any_client_with_its_key(
    make_client: MakeClient,
) -> None:
    worker, other = make_client("worker"), make_client(address="127.0.0.2")
    key = worker.send("job")
    worker.texts()

    assert other.delete(key)


def test_a_message_in_the_queue_cannot_be_deleted(aweq: AweqClient, clock: ManualClock) -> None:
    key = aweq.send("job")

    assert not aweq.delete(key)

    assert aweq.texts() == ["job"]
    clock.advance(seconds=120)
    assert aweq.lengths() == (1, 0)
    assert not aweq.delete(key)
    assert aweq.lengths() == (1, 0)


@pytest.mark.parametrize(
    "key", ["123e4567-e89b-12d3-a456-426655440000", "nonsense", "%F0%9F%98%80", "..%2f"]
)
def test_a_key_that_means_nothing_succeeds_in_silence(aweq: AweqClient, key: str) -> None:
    assert not aweq.delete(key)


def test_deleting_twice_does_no_harm(aweq: AweqClient) -> None:
    key = aweq.send("job")
    aweq.texts()

    assert aweq.delete(key)
    assert not aweq.delete(key)


def test_asking_for_the_head_hands_out_nothing(aweq: AweqClient) -> None:
    aweq.send("job")

    assert aweq.http.head("/receive-message").status_code == 200

    assert aweq.lengths() == (1, 0)


def test_a_message_is_received_once_by_concurrent_clients(
    make_client: MakeClient, aweq: AweqClient
) -> None:
    sent = {aweq.send(f"job {number}") for number in range(60)}
    clients = [make_client(f"worker {number}") for number in range(8)]

    with ThreadPoolExecutor(len(clients)) as pool:
        batches = list(pool.map(lambda client: client.receive(10)["messages"], clients * 2))

    keys = [entry["key"] for batch in batches for entry in batch]
    assert len(keys) == len(sent)
    assert set(keys) == sent


def test_a_checked_out_message_survives_a_restart(
    make_server: MakeServer,
) -> None:
    before = make_server()
    first = AweqClient(before.url)
    key = first.send("job")
    first.texts()
    first.close()
    before.stop()

    second = AweqClient(make_server().url)

    assert second.lengths() == (0, 1)
    assert second.delete(key)
    second.close()


def test_the_end_of_the_lifetime_does_not_wait_for_the_reaper(
    make_server: MakeServer,
) -> None:
    clock = ManualClock()
    server = make_server(clock=clock, aweq={"lease_ms": 1_500}, queues={"reap_interval_ms": HOUR})
    aweq = AweqClient(server.url)
    aweq.send("job")
    aweq.texts()

    clock.advance(ms=1_499)
    assert aweq.lengths() == (0, 1)
    clock.advance(ms=1)
    assert aweq.lengths() == (1, 0)

    assert aweq.stats()["stats"]["checkout_lifetime"] == "1.5s"
    assert aweq.stats()["stats"]["rescue_interval"] == "3600s"
    aweq.close()
