"""Callers that wait for messages to end cost no polling, and miss no end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from penstock.domain.errors import StoreUnavailable, TooManyWaiting
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import State
from penstock.ports.store import Session, Store
from penstock.ports.ticket import Ticket
from penstock.runtime.waiting_results import WaitingResults
from penstock.supervision.health import NodeHealth
from tests.store.driver import StoreDriver
from tests.support.waiting import eventually

MANY = 10_000
LONG_MS = 60_000


class CountedReads:
    """A store whose reads are counted."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.reads = 0
        self.is_broken = False

    def read(self, what: Callable[[Session], Any]) -> Ticket[Any]:
        self.reads += 1
        if self.is_broken:
            raise StoreUnavailable("broken")
        return self._store.read(what)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class NoEndings:
    """Every hint is lost."""

    def listen_for_endings(self, callback: Callable[[Sequence[str]], None]) -> None: ...
    def watch_endings(self, is_on: bool) -> None: ...


class Scene:
    def __init__(self, driver: StoreDriver, *, most: int = MANY, hears: bool = True) -> None:
        self.driver = driver
        self.store = CountedReads(driver.store)
        endings: Any = driver.store if hears else NoEndings()
        self.waiting = WaitingResults(
            self.store,
            endings,
            driver.clock,
            most=most,
            poll_ms=LONG_MS,
            health=NodeHealth(),
        )
        self.stack = ExitStack()
        self.mail = driver.queue()

    def wait_for(self, message_id: str) -> Any:
        """What the caller waits on; it stays registered until the end of the test."""
        return self.stack.enter_context(self.waiting.register(message_id))

    def complete(self, *ids: str, result: str | None = "17") -> None:
        for held in self.driver.claim(self.mail, len(ids)):
            assert held.id in ids
            self.driver.act(Verb.COMPLETE, held, result=result)


@pytest.fixture
def scene(driver: StoreDriver) -> Iterator[Scene]:
    scene = Scene(driver)
    yield scene
    scene.waiting.close()
    scene.stack.close()


def test_ten_thousand_waiters_cost_a_read_only_when_one_of_their_messages_ends(scene):
    [message_id] = scene.driver.send_many(scene.mail, 1)
    ours = scene.wait_for(message_id)
    for no in range(MANY - 1):
        scene.wait_for(f"another-{no}")
    for other in scene.driver.send_many(scene.mail, 20):
        scene.driver.alter(other, lambda m, _: m)  # traffic of messages that are not waited for
    assert (scene.waiting.waiting, scene.store.reads) == (MANY, 0)

    scene.driver.act(Verb.COMPLETE, scene.driver.claim(scene.mail)[0], result="17")

    found = ours.wait(LONG_MS).result()
    assert (found.id, found.result, scene.store.reads) == (message_id, "17", 1)


def test_one_query_looks_up_all_that_are_waited_for_at_intervals(driver):
    scene = Scene(driver, hears=False)
    ids = driver.send_many(scene.mail, 200)
    waiters = [scene.wait_for(message_id) for message_id in ids]

    scene.waiting.poll()
    assert scene.store.reads == 1

    scene.complete(ids[0], result=None)
    scene.waiting.poll()
    assert waiters[0].wait(LONG_MS).result().state is State.DONE
    assert waiters[1].wait(0).result() is None
    assert scene.store.reads == 3  # the second poll, and what became of one message
    scene.waiting.close()


@pytest.mark.parametrize("result", ["17", None])
def test_callers_of_one_message_all_get_its_result(scene, result):
    [message_id] = scene.driver.send_many(scene.mail, 1)
    waiters = [scene.wait_for(message_id) for _ in range(3)]

    scene.complete(message_id, result=result)

    assert [one.wait(LONG_MS).result().result for one in waiters] == [result] * 3


def test_on_an_event_loop_waiting_does_not_block_the_loop(scene):
    ids = scene.driver.send_many(scene.mail, 3)
    waiters = [scene.wait_for(message_id) for message_id in ids]

    async def wait(waiter: Any, wait_ms: int) -> Any:
        return await waiter.wait(wait_ms)

    async def scenario() -> None:
        first, *others = [asyncio.ensure_future(wait(one, LONG_MS)) for one in waiters]
        await asyncio.sleep(0)
        others[0].cancel()
        await asyncio.to_thread(scene.complete, *ids)
        assert (await first).result == "17"
        assert (await others[1]).result == "17"
        assert others[0].cancelled()

    asyncio.run(scenario())


def test_a_wait_ends_in_time(scene):
    [message_id] = scene.driver.send_many(scene.mail, 1)
    waiter = scene.wait_for(message_id)

    async def wait() -> Any:
        return await waiter.wait(1)

    assert waiter.wait(1).result() is None
    assert asyncio.run(wait()) is None


def test_a_message_that_is_redriven_at_once_is_waited_for_still(scene):
    [message_id] = scene.driver.send_many(scene.mail, 1)
    waiter = scene.wait_for(message_id)
    scene.driver.act(Verb.BURY, scene.driver.claim(scene.mail)[0])

    assert waiter.wait(LONG_MS).result().state is State.DEAD
    again = scene.wait_for(message_id)
    mail = scene.mail.queue_no
    scene.driver.write(lambda s: s.messages.redrive(mail, to=None, limit=1, now=scene.driver.now))
    scene.waiting.check([message_id])

    assert again.wait(0).result() is None


def test_a_store_that_fails_does_not_end_the_waiting(scene):
    [message_id] = scene.driver.send_many(scene.mail, 1)
    waiter = scene.wait_for(message_id)
    scene.store.is_broken = True
    scene.complete(message_id)
    eventually(lambda: scene.store.reads)

    scene.store.is_broken = False
    scene.waiting.poll()

    assert waiter.wait(LONG_MS).result().result == "17"


def test_more_callers_than_allowed_are_refused(driver):
    scene = Scene(driver, most=1)
    scene.wait_for("a")

    with pytest.raises(TooManyWaiting):
        scene.wait_for("a")
    scene.stack.close()
    scene.wait_for("a")
    scene.stack.close()
    scene.waiting.close()


def test_closing_ends_every_wait_at_once_and_those_to_come(scene):
    waiter = scene.wait_for("a")

    scene.waiting.close()

    assert waiter.wait(LONG_MS).result() is None
    assert scene.wait_for("b").wait(LONG_MS).result() is None
