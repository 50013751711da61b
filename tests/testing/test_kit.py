"""The testing kit runs jobs as production does; only time stands still."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from penstock import (
    Batch,
    Bury,
    Cancel,
    Item,
    Penstock,
    sleep,
    step,
    wait_event,
)
from penstock.domain.errors import InvalidRequest
from penstock.testing import Kit, Outcome
from tests.edge.api import a_name
from tests.testing.shop import Address, MakeKit, Shop, kit, shop

__all__ = ["kit", "shop"]

pytestmark = pytest.mark.environments("kit")


def test_an_enqueued_job_is_found_by_some_of_its_arguments(kit: Kit, shop: Shop) -> None:
    shop.send_mail.using(group="g", tags=["t"]).enqueue("ada", subject="x")

    [job] = kit.assert_enqueued(shop.send_mail, {"to": "ada"}, queue="mail", group="g", tag="t")

    assert job.arguments == {"to": "ada", "subject": "x"}
    kit.assert_enqueued(shop.send_mail, count=1)
    kit.assert_not_enqueued(shop.send_mail, {"to": "bob"})
    kit.assert_not_enqueued(shop.send_parcel)


def test_a_failed_assertion_shows_the_expected_and_the_enqueued_jobs(kit: Kit, shop: Shop) -> None:
    shop.send_mail.enqueue("ada")

    with pytest.raises(AssertionError, match=r"'bob'(.|\n)*send_mail.*ada.*in mail, ready"):
        kit.assert_enqueued(shop.send_mail, {"to": "bob"})
    with pytest.raises(AssertionError, match="2 jobs"):
        kit.assert_enqueued(shop.send_mail, count=2)
    with pytest.raises(AssertionError, match="there are 1"):
        kit.assert_not_enqueued(shop.send_mail)


def test_running_runs_what_is_due_and_what_that_enqueues(kit: Kit, shop: Shop) -> None:
    shop.order.enqueue("ada")
    shop.send_mail.enqueue_in("1h", "bob")

    runs = kit.run()

    assert [(run.kind, run.outcome) for run in runs] == [
        (shop.order.kind, Outcome.DONE),
        (shop.send_mail.kind, Outcome.DONE),
    ]
    assert shop.did == [("ada", "hi", 1)]
    kit.assert_enqueued(shop.send_mail, {"to": "bob"}, due_at=kit.clock.moment + timedelta(hours=1))
    kit.advance("1h")
    kit.run()
    assert shop.did[-1] == ("bob", "hi", 1)
    assert [job.arguments["to"] for job in kit.ended(shop.send_mail)] == ["ada", "bob"]


def test_arguments_go_through_the_real_serialiser(kit: Kit, shop: Shop) -> None:
    address = Address("Main Street", kit.clock.moment)

    shop.send_parcel.enqueue(address)
    [run] = kit.run()

    assert shop.did == [address]
    assert shop.did[0] is not address
    assert run.result == "sent"
    with pytest.raises(InvalidRequest):
        shop.send_mail.enqueue(object())  # type: ignore[arg-type]


def test_one_job_is_performed_and_the_others_are_left_alone(kit: Kit, shop: Shop) -> None:
    shop.send_mail.enqueue("ada")

    run = kit.perform(shop.send_mail, "bob", subject="x")

    assert run.outcome is Outcome.DONE
    assert shop.did == [("bob", "x", 1)]
    [left] = kit.enqueued(shop.send_mail)
    assert (left.arguments, left.attempts) == ({"to": "ada"}, 0)


def test_inline_jobs_run_as_soon_as_they_are_enqueued(kit: Kit, shop: Shop) -> None:
    with kit.inline():
        shop.order.enqueue("ada")
        assert shop.did == [("ada", "hi", 1)]
        shop.outcome = ValueError("no")
        with pytest.raises(ValueError, match="no"):
            shop.send_mail.enqueue("bob")

    shop.send_mail.enqueue("carl")
    assert [to for to, *_ in shop.did] == ["ada", "bob"]


def test_dead_letters_are_left_alone(shop: Shop, penstock_kit: MakeKit, kit_url: str) -> None:
    shop.app.queue("mail", dead_letter_queue="mail-dead")
    shop.app.queue("mail-dead")
    kit = penstock_kit(shop.app, url=kit_url)
    shop.outcome = Bury("no such mailbox")
    shop.send_mail.enqueue("ada")

    assert [run.outcome for run in kit.run()] == [Outcome.BURIED]

    assert kit.run() == []
    assert len(shop.did) == 1


def test_jobs_that_enqueue_each_other_for_ever_are_noticed(
    penstock_kit: MakeKit, kit_url: str
) -> None:
    app = Penstock("sqlite:///never-opened.db")

    @app.job
    def again() -> None:
        again.enqueue()

    kit = penstock_kit(app, url=kit_url)
    again.enqueue()

    with pytest.raises(AssertionError, match="still not done after 10 runs"):
        kit.run(at_most=10)


def test_recurring_work_follows_the_clock(penstock_kit: MakeKit, kit_url: str) -> None:
    app = Penstock("sqlite:///never-opened.db")
    did = []

    @app.recurring(every="1h")
    @app.job
    def hourly() -> None:
        did.append(used.clock.now())

    used = penstock_kit(app, url=kit_url)
    used.advance("1h")
    used.run()
    used.advance("1h")
    used.run()

    assert len(did) == 2


async def test_async_tests_run_jobs_on_their_own_loop(kit: Kit, shop: Shop) -> None:
    await shop.send_parcel.enqueue_async(Address("Main Street", kit.clock.moment))
    shop.send_mail.enqueue("ada")
    assert [run.outcome for run in await kit.run_async()] == [Outcome.DONE, Outcome.DONE]
    kit.assert_not_enqueued(shop.send_mail)
    with kit.inline():
        await shop.send_mail.enqueue_async("bob")

    assert len(shop.did) == 3


def test_after_the_test_the_application_is_as_it_was(shop: Shop, kit_url: str) -> None:
    with Kit(shop.app, url=kit_url):
        shop.send_mail.enqueue("ada")

    assert not shop.app._lazy_backend.is_open


def test_a_kit_may_use_a_store_that_is_named(shop: Shop, kit_url: str) -> None:
    with Kit(shop.app, url=kit_url):
        shop.send_mail.enqueue("ada")

    with Kit(shop.app, url=kit_url) as kit:
        kit.assert_enqueued(shop.send_mail, {"to": "ada"})


@pytest.mark.no_store("process")
def test_pytest_finds_the_fixtures_without_configuration(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from penstock import Penstock

        app = Penstock("sqlite:///never-opened.db")

        @app.job
        def hello(name: str) -> str:
            return f"hello {name}"

        def test_it(penstock_kit, penstock_clock):
            kit = penstock_kit(app)
            hello.enqueue("ada")
            [run] = kit.run()
            assert run.result == "hello ada"
            assert kit.clock is penstock_clock
        """
    )

    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_jobs_of_a_chunk_handler_run_in_one_call_and_each_has_a_run(shop, kit):
    seen: list[list[int]] = []

    @shop.app.job(queue="numbers", batch=Batch(max=3))
    def add(items: list[Item[int]]) -> None:
        seen.append([item.value for item in items])
        for item in items:
            if item.value == 2:
                item.settle(Cancel("even"))

    add.enqueue_many([add.args(n) for n in range(4)])
    shop.send_mail.enqueue("ada")
    runs = kit.run()

    assert seen == [[0, 1, 2], [3]]
    outcomes = [run.outcome for run in runs if run.kind == "add"]
    assert outcomes == [Outcome.DONE, Outcome.DONE, Outcome.CANCELLED, Outcome.DONE]
    assert shop.did == [("ada", "hi", 1)]
    assert kit.perform(add, 5).outcome is Outcome.DONE


def test_a_suspended_job_is_continued_when_its_time_or_its_signal_has_come(
    kit: Kit, shop: Shop
) -> None:
    name = a_name("approved")

    @shop.app.job
    async def approve() -> Any:
        await step("charge", lambda: 5)
        await sleep("3d")
        return await wait_event(name, timeout="7d")

    approve.enqueue()
    [first] = kit.run()
    assert (first.outcome, kit.steps(first)["charge"]) == (Outcome.SNOOZED, 5)
    kit.advance("3d")
    assert [run.outcome for run in kit.run()] == [Outcome.SNOOZED]

    shop.app.signal(name, {"by": "ada"})

    [last] = kit.run()
    assert (last.outcome, last.result) == (Outcome.DONE, {"by": "ada"})
    assert kit.steps(last) == {
        "charge": 5,
        "sleep": {"sleep_ms": 3 * 86_400_000},
        f"signal {name}": {"body": {"by": "ada"}},
    }
