"""Unique jobs: one at a time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock import Penstock, Unique
from penstock.domain.errors import InvalidRequest


def test_the_same_arguments_are_one_job_until_it_has_ended(app, queue, driver):
    @app.job(queue=queue, unique=True)
    def index(page: int, deep: bool = False) -> None: ...

    first = index.enqueue(1)
    again = index.enqueue(1, deep=False)
    other = index.enqueue(2)
    deep = index.enqueue(1, deep=True)
    claimed = driver.claim()
    while_running = index.enqueue(page=1)
    driver.act(*(driver.act_of(work) for work in claimed))
    afterwards = index.enqueue(1)

    assert (again.id, again.is_duplicate) == (first.id, True)
    assert (while_running.id, while_running.is_duplicate) == (first.id, True)
    assert len({first.id, other.id, deep.id, afterwards.id}) == 4
    assert not afterwards.is_duplicate


def test_until_it_is_claimed_means_that_one_more_may_wait_while_one_runs(app, queue, driver):
    @app.job(queue=queue, unique=Unique(until="claimed"))
    def index(page: int) -> None: ...

    first = index.enqueue(1)
    assert index.enqueue(1).is_duplicate
    driver.claim()

    waiting = index.enqueue(1)
    assert not waiting.is_duplicate
    assert index.enqueue(1).id == waiting.id != first.id


def test_only_the_named_arguments_count(app, queue):
    @app.job(queue=queue, unique=Unique(by=("to",)))
    def mail(to: str, subject: str = "hi") -> None: ...

    mail.enqueue("ada", "one")

    assert mail.enqueue("ada", "two").is_duplicate
    assert not mail.enqueue("bob", "one").is_duplicate


@pytest.mark.parametrize("window", ["1h", timedelta(hours=1)])
def test_a_window_lasts_whatever_happens_to_the_first_message(app, queue, driver, clock, window):
    @app.job(queue=queue, unique=Unique(until=window))
    def mail(to: str) -> None: ...

    mail.enqueue("ada")
    driver.run_due()
    clock.advance(minutes=59)
    assert mail.enqueue("ada").is_duplicate

    clock.advance(minutes=1)
    assert not mail.enqueue("ada").is_duplicate


def test_jobs_of_different_kinds_are_different_jobs(app, queue):
    @app.job(queue=queue, unique=True)
    def one(n: int) -> None: ...

    @app.job(queue=queue, unique=True)
    def two(n: int) -> None: ...

    one.enqueue(1)

    assert not two.enqueue(1).is_duplicate


def test_kinds_with_long_names_are_distinguished(app, queue):
    def mail(to: str) -> None: ...

    one, two = (app.job(queue=queue, unique=True, kind="k" * 120 + end)(mail) for end in "ab")
    one.enqueue("ada")

    assert not two.enqueue("ada").is_duplicate


def test_a_key_of_ones_own_takes_the_place_of_the_arguments(app, queue):
    @app.job(queue=queue, unique=True)
    def mail(to: str) -> None: ...

    mail.using(dedup_key="today").enqueue("ada")

    assert mail.using(dedup_key="today").enqueue("bob").is_duplicate
    assert not mail.enqueue("ada").is_duplicate


def test_by_kind_it_is_as_unique_as_by_the_function(app, queue):
    @app.job(queue=queue, unique=True)
    def mail(to: str) -> None: ...

    mail.enqueue("ada")

    assert app.enqueue("mail", {"to": "ada"}).is_duplicate


def test_many_at_once_report_their_duplicates(app, queue):
    @app.job(queue=queue, unique=True)
    def mail(to: str) -> None: ...

    enqueued = mail.enqueue_many([{"to": "ada"}, {"to": "bob"}, {"to": "ada"}])

    assert [one.is_duplicate for one in enqueued] == [False, False, True]
    assert enqueued[0].id == enqueued[2].id


@pytest.mark.no_store("declaring")
def test_invalid_options_of_unique_are_rejected_where_the_job_is_declared():
    app = Penstock("sqlite:///nowhere.db")

    def mail(to: str) -> None: ...

    with pytest.raises(InvalidRequest, match="job 'mail' has no parameter subject"):
        app.job(unique=Unique(by=("subject",)))(mail)
    with pytest.raises(InvalidRequest, match="until is 'never'"):
        app.job(unique=Unique(until="never"))(mail)
    app.job(unique=Unique(until="1h"))(mail)
    with pytest.raises(InvalidRequest, match="queue 'default' has the dedup_window 1h"):
        app.job(kind="other", unique=Unique(until="2h"))(mail)
