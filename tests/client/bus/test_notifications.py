"""Notifications: recorded, found by their tags, moved, removed, handled, retried, remembered."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from penstock import DueNotification, Penstock, RetrySchedule
from penstock.domain.errors import InvalidRequest, MessageNotFound, WrongState
from penstock.domain.message.lifecycle import State
from tests.client.bus.recorded_notification import InvoiceDue
from tests.edge.api import a_name


def test_a_notification_is_handled_when_its_date_has_come_and_not_before(
    app, worker, clock, queue, moment
):
    seen: list[InvoiceDue] = []
    billing = app.notifications(queue)

    @billing.handler()
    def on_due(event: InvoiceDue) -> None:
        seen.append(event)

    billing.record(InvoiceDue(7, moment(days=1)), due_at=moment(days=1))

    worker.round()
    clock.advance(days=1, ms=-1)
    worker.round()
    assert seen == []

    clock.advance(ms=1)
    worker.round()
    assert seen == [InvoiceDue(7, moment(days=1))]


def test_the_handler_gets_the_date_the_tags_and_its_own_token(
    app, worker, clock, queue, account, tenant, moment
):
    seen: list[DueNotification] = []
    billing = app.notifications(queue)

    @billing.handler()
    async def on_due(event: dict, about: DueNotification) -> None:
        seen.append(about)

    recorded = billing.record(
        {"invoice": 7},
        due_at=moment(hours=1),
        kind="invoice.due",
        tags=("account-1", "tenant-1"),
        user_token="u-1",
    )
    clock.advance(hours=2)
    worker.round()

    [about] = seen
    assert about.due_at == moment(hours=1)
    assert about.tags == ("account-1", "tenant-1")
    assert (about.user_token, about.kind, about.attempts) == ("u-1", "invoice.due", 1)
    assert about.future_user_token == recorded.future_user_token
    assert about.future_user_token not in (None, "u-1")


@pytest.mark.environments("volume")
def test_one_hundred_notifications_fire_as_time_passes(app, worker, clock, queue, moment):
    seen: list[int] = []
    billing = app.notifications(queue)

    @billing.handler()
    def on_due(event: int) -> None:
        seen.append(event)

    for second in range(100):
        billing.record(second, due_at=moment(seconds=second))
    for _ in range(100):
        worker.round()
        clock.advance(seconds=1)

    assert seen == list(range(100))


def test_two_queues_never_get_each_others_notifications(app, worker, clock, queue):
    seen: dict[str, list[str]] = {queue: [], f"{queue}-b": []}
    for name in seen:

        def handler(event: str, name: str = name) -> None:
            seen[name].append(event)

        app.notifications(name).handler("same.kind")(handler)

    for name in seen:
        app.notifications(name).record(f"for {name}", delay="1m", kind="same.kind")
    clock.advance(minutes=1)
    worker.round()

    assert seen == {name: [f"for {name}"] for name in seen}


def test_every_way_to_look_one_up_finds_the_right_ones(
    app, worker, clock, queue, account, tenant, moment
):
    billing, other = app.notifications(queue), app.notifications(a_name("other"))

    @billing.handler()
    def on_due(event: str) -> None:
        pass

    due = billing.record("due", delay="1m", tags=(account, tenant))
    future = billing.record("future", delay="2h", tags=(account, tenant))
    neighbour = billing.record("neighbour", delay="2h", tags=("a2", tenant))
    elsewhere = other.record("elsewhere", delay="2h", tags=(account, tenant))
    clock.advance(minutes=2)

    def ids(found):
        return [one.id for one in found]

    # Unclaimed notifications count as future even if they are due.
    assert ids(billing.find(tag1=account, tag2=tenant)) == [due.id, future.id]
    assert ids(billing.find(tag1=account, tag2=tenant, which="future")) == [due.id, future.id]
    assert ids(billing.find(tag2=tenant)) == [due.id, future.id, neighbour.id]
    assert ids(billing.find(tag2=tenant, everywhere=True)) == [
        due.id,
        future.id,
        neighbour.id,
        elsewhere.id,
    ]
    # The later bound is exclusive, the earlier one inclusive.
    assert ids(billing.find(tag2=tenant, due_before=future.due_at)) == [due.id]
    assert ids(billing.find(tag2=tenant, due_from=future.due_at)) == [future.id, neighbour.id]

    [held] = worker.claim()
    assert held.id == due.id
    assert ids(billing.find(tag1=account, tag2=tenant, which="leased")) == [due.id]
    assert ids(billing.find(tag1=account, tag2=tenant, which="future")) == [future.id]
    assert ids(billing.find(tag1=account, tag2=tenant)) == [due.id, future.id]
    # For a leased one, the date it was recorded for counts, not the end of its lease.
    assert ids(billing.find(tag2=tenant, which="leased", due_before=due.due_at)) == []
    assert ids(billing.find(tag2=tenant, which="leased", due_from=due.due_at)) == [due.id]

    assert worker.act(worker.handle(held)) == [None]
    [done] = billing.past(tag1=account, tag2=tenant)
    assert (done.id, done.state, done.due_at) == (due.id, State.DONE, due.due_at)
    assert done.body == "due"
    assert ids(billing.past(tag2=tenant, from_at=moment(minutes=2))) == [due.id]
    assert ids(billing.past(tag2=tenant, to_at=moment(minutes=2))) == []


@pytest.mark.environments("volume")
def test_more_than_a_page_is_found(app, queue, account):
    billing = app.notifications(queue)
    recorded = [billing.record(i, delay="1h", tags=(account,)).id for i in range(250)]

    assert [one.id for one in billing.find(tag1=account)] == recorded


def test_without_a_tag_nothing_is_looked_for(app, queue):
    billing = app.notifications(queue)
    billing.record("x", delay="1h")

    with pytest.raises(InvalidRequest):
        list(billing.find())


def test_a_notification_is_moved_to_another_date(app, worker, clock, queue, account, moment):
    seen: list[datetime | None] = []
    billing = app.notifications(queue)

    @billing.handler()
    def on_due(event: str, about: DueNotification) -> None:
        seen.append(about.due_at)

    recorded = billing.record("x", due_at=moment(days=9), tags=(account,))
    billing.move(recorded.id, moment(hours=1))
    [found] = billing.find(tag1=account)
    assert found.due_at == moment(hours=1)

    clock.advance(hours=1)
    worker.round()
    assert seen == [moment(hours=1)]


def test_body_kind_and_tags_are_changed_while_it_waits(app, worker, clock, queue, account, tenant):
    seen: list[InvoiceDue] = []
    billing = app.notifications(queue)

    @billing.handler("invoice.changed")
    def on_due(event: InvoiceDue) -> None:
        seen.append(event)

    recorded = billing.record(InvoiceDue(7), delay="1h", tags=(account, tenant), user_token="u-1")
    billing.change(recorded.id, body=InvoiceDue(8), tags=("a2", tenant), kind="invoice.changed")

    assert list(billing.find(tag1=account)) == []
    [found] = billing.find(tag1="a2")
    assert (found.id, found.user_token) == (recorded.id, "u-1")
    assert found.future_user_token == recorded.future_user_token
    clock.advance(hours=1)
    worker.round()
    assert seen == [InvoiceDue(8)]


def test_one_that_is_being_handled_is_neither_changed_nor_removed(
    app, worker, clock, queue, account, moment
):
    billing = app.notifications(queue)
    recorded = billing.record("x", tags=(account,))

    @billing.handler()
    def on_due(event: str) -> None:
        with pytest.raises(WrongState):
            billing.change(recorded.id, body="y")
        with pytest.raises(WrongState):
            billing.move(recorded.id, moment(days=1))
        with pytest.raises(WrongState):
            billing.remove(recorded.id)
        assert billing.remove_all(tag1=account) == 0

    worker.round()

    [done] = billing.past(tag1=account)
    assert (done.state, done.body) == (State.DONE, "x")


def test_a_removed_one_is_never_handled_and_history_says_so(app, worker, clock, queue, account):
    billing = app.notifications(queue)

    @billing.handler()
    def on_due(event: str) -> None:
        raise AssertionError("it was removed")

    recorded = billing.record("x", delay="1h", tags=(account,))
    assert billing.remove(recorded.id).state is State.CANCELLED
    clock.advance(hours=2)

    assert worker.round() == []
    [past] = billing.past(tag1=account)
    assert past.state is State.CANCELLED
    with pytest.raises(MessageNotFound):
        billing.remove(recorded.id)


@pytest.mark.environments("volume")
def test_all_with_the_tags_are_removed_however_many_they_are(app, clock, queue, account, tenant):
    billing, other = app.notifications(queue), app.notifications(a_name("other"))
    for i in range(1_200):
        billing.record(i, delay="1h", tags=(account, tenant))
    kept = billing.record("kept", delay="1h", tags=("a2", tenant))
    elsewhere = other.record("elsewhere", delay="1h", tags=(account, tenant))

    assert billing.remove_all(tag1=account, tag2=tenant) == 1_200

    assert [one.id for one in billing.find(tag2=tenant, everywhere=True)] == [kept.id, elsewhere.id]
    assert other.remove_all(tag2=tenant, everywhere=True) == 2


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"due_at": datetime(2030, 1, 1)}, "time zone"),  # noqa: DTZ001
        ({"tags": ("a", "b", "c")}, "two tags"),
        ({"user_token": ""}, "user_token"),
        ({"attributes": {"notification.due_at": "1"}}, "notification"),
    ],
)
def test_an_invalid_notification_is_refused(app, wrong, text, queue):
    with pytest.raises(InvalidRequest, match=text):
        app.notifications(queue).record("x", **wrong)


def test_a_body_that_json_cannot_carry_is_refused(app, queue):
    with pytest.raises(InvalidRequest):
        app.notifications(queue).record(object())


@pytest.mark.no_store("declaring")
def test_a_handler_must_be_able_to_take_what_was_sent():
    billing = Penstock("sqlite:///nowhere.db").notifications("billing")
    with pytest.raises(InvalidRequest):
        billing.handler()(lambda: None)
    with pytest.raises(InvalidRequest):
        billing.handler()(lambda a, b, c: None)


@pytest.mark.no_store("declaring")
@pytest.mark.parametrize(
    "settings",
    [
        {"on_exhausted": print},
        {"attempts": 0},
        {"attempts": 3, "retry": RetrySchedule(["1h"])},
    ],
)
def test_how_a_handler_gives_up_must_make_sense(settings):
    billing = Penstock("sqlite:///nowhere.db").notifications("billing")

    with pytest.raises(InvalidRequest):
        billing.handler(**settings)(lambda event: None)


@pytest.mark.no_store("declaring")
def test_a_retry_schedule_takes_durations_and_nothing_else():
    assert RetrySchedule(["1h", timedelta(days=1)]).offsets_ms == (3_600_000, 86_400_000)
    with pytest.raises(InvalidRequest):
        RetrySchedule([3600])  # type: ignore[list-item]
    with pytest.raises(InvalidRequest):
        RetrySchedule(["1s"] * 101)


def test_a_queue_that_does_not_exist_yet_has_no_notifications(app, queue, account):
    fresh = app.notifications(queue)

    assert list(fresh.find(tag1=account)) == []
    assert list(fresh.past(tag1=account)) == []
    assert fresh.remove_all(tag1=account) == 0
    with pytest.raises(InvalidRequest, match="tag1, tag2 or tag"):
        list(fresh.find())
