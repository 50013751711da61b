"""How jobs end under the testing kit: as in production."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from penstock import (
    Batch,
    Bury,
    Cancel,
    JobFailed,
    Penstock,
    Retry,
    Snooze,
    current,
)
from penstock.testing import Kit, Outcome
from tests.testing.shop import Address, MakeKit, Shop, kit, shop

__all__ = ["kit", "shop"]

pytestmark = pytest.mark.environments("kit")


def test_the_error_of_a_handler_comes_out_and_its_job_is_failed(kit: Kit, shop: Shop) -> None:
    shop.outcome = ValueError("no such mailbox")
    shop.send_mail.enqueue("ada")

    with pytest.raises(ValueError, match="no such mailbox"):
        kit.run()

    [job] = kit.enqueued(shop.send_mail)
    assert (job.state, job.failures) == ("waiting", 1)
    assert "no such mailbox" in (job.last_error or "")


def test_retries_follow_the_clock_until_the_job_is_dead(kit: Kit, shop: Shop) -> None:
    shop.outcome = ValueError("no")
    shop.send_mail.enqueue("ada")

    outcomes = []
    for _ in range(4):
        outcomes += [run.outcome for run in kit.run(raises=False)]
        kit.advance("1m")

    assert outcomes == [Outcome.FAILED] * 3
    [job] = kit.enqueued(shop.send_mail)
    assert (job.state, job.attempts, job.reason) == ("dead", 3, "attempts_exhausted")


@pytest.mark.parametrize(
    ("said", "outcome", "state"),
    [
        (Snooze("10m"), Outcome.SNOOZED, "waiting"),
        (Retry("10m"), Outcome.FAILED, "waiting"),
        (Bury("no such address"), Outcome.BURIED, "dead"),
        (Cancel("not needed"), Outcome.CANCELLED, "cancelled"),
        (None, Outcome.DONE, "done"),
    ],
)
def test_outcomes_do_what_they_do_in_production(
    kit: Kit, shop: Shop, said: Any, outcome: Outcome, state: str
) -> None:
    shop.outcome = said
    shop.send_mail.enqueue("ada")

    [run] = kit.run()

    assert run.outcome is outcome
    [job] = kit.enqueued(shop.send_mail) or kit.ended(shop.send_mail)
    assert job.state == state


def test_a_handler_that_lets_its_time_pass_is_timed_out(
    penstock_kit: MakeKit, kit_url: str
) -> None:
    app = Penstock("sqlite:///never-opened.db")

    @app.job(timeout="30s")
    def slow() -> None:
        used.clock.advance(seconds=31)

    used = penstock_kit(app, url=kit_url)
    slow.enqueue()
    [run] = used.run()

    assert run.outcome is Outcome.TIMED_OUT
    [job] = used.enqueued(slow)
    assert (job.state, job.reason) == ("dead", "timed_out")


def test_progress_that_a_handler_reports_after_its_timeout_is_ignored(
    penstock_kit: MakeKit, kit_url: str
) -> None:
    app = Penstock("sqlite:///never-opened.db")

    @app.job(timeout="30s", retries_timeouts=True, backoff="5m")
    def slow() -> None:
        used.clock.advance(seconds=31)
        current().progress(0.9)

    used = penstock_kit(app, url=kit_url)
    slow.enqueue()
    [run] = used.run()

    assert run.outcome is Outcome.TIMED_OUT
    [job] = used.enqueued(slow)
    assert (job.state, job.due_at) == ("waiting", used.clock.moment + timedelta(minutes=5))


def test_a_job_without_a_handler_is_parked(kit: Kit, shop: Shop) -> None:
    shop.app.enqueue("unheard-of", {}, queue="mail")

    [run] = kit.run()

    assert run.outcome is Outcome.PARKED
    assert kit.enqueued("unheard-of")[0].attempts == 0


def test_an_error_of_a_chunk_handler_is_raised_after_all_its_jobs_have_failed(shop, kit):
    @shop.app.job(queue="numbers", batch=Batch(max=3))
    def add(numbers: list[int]) -> None:
        raise OSError("no")

    add.enqueue_many([add.args(n) for n in range(2)])
    with pytest.raises(OSError, match="no"):
        kit.run()

    assert [job.failures for job in kit.enqueued("add")] == [1, 1]


def test_a_handle_has_the_result_once_the_job_has_run(kit: Kit, shop: Shop) -> None:
    @shop.app.job
    def since(address: Address) -> datetime:
        return address.since

    handle = since.enqueue(Address("Lane", kit.clock.moment))
    with pytest.raises(TimeoutError, match="still ready: run it, then wait for it"):
        handle.result()
    kit.run()

    assert handle.result() == kit.clock.moment
    with kit.inline():
        assert since.enqueue(Address("Lane", kit.clock.moment)).result() == kit.clock.moment


def test_a_result_that_cannot_be_kept_buries_the_job(kit: Kit, shop: Shop) -> None:
    limits = kit.app.backend.limits
    assert limits is not None

    @shop.app.job
    def text(size: int) -> str:
        return "x" * size

    handle = text.enqueue(limits.max_result_bytes)
    [run] = kit.run()

    assert run.outcome is Outcome.BURIED

    with pytest.raises(JobFailed, match=r"more than limits\.max_result_bytes"):
        handle.result()
    [job] = kit.enqueued(text)
    assert (job.state, job.attempts) == ("dead", 1)
