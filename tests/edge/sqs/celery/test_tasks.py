"""Ordinary use of a Celery application."""

from __future__ import annotations

from datetime import UTC, datetime
from time import monotonic

import pytest
from botocore.exceptions import ClientError
from celery import chain, group

from tests.edge.sqs.celery.conftest import DEAD_LETTERS, PATIENCE_S, Shop, result_of
from tests.support.waiting import eventually


def test_a_task_runs_and_its_result_comes_back(the_shop: Shop) -> None:
    assert result_of(the_shop.run("add", 2, 3)) == 5


def test_a_task_that_has_run_leaves_the_queue(the_shop: Shop) -> None:
    result_of(the_shop.run("add", 2, 3))

    the_shop.wait_until_empty("shop")


def test_a_task_that_fails_is_tried_again_until_it_works(the_shop: Shop) -> None:
    journal = the_shop.journal()

    worked_at = result_of(the_shop.run("flaky", journal, 2))

    assert worked_at == 2
    assert the_shop.marks(journal) == ["0", "1", "2"]


def test_a_task_with_a_countdown_runs_when_it_is_over(the_shop: Shop) -> None:
    began = monotonic()

    result_of(the_shop.run("add", 1, 2, countdown=1))

    assert monotonic() - began >= 1


def test_a_task_for_a_time_gone_by_runs_at_once(the_shop: Shop) -> None:
    assert result_of(the_shop.run("add", 1, 2, eta=datetime(2001, 1, 1, tzinfo=UTC))) == 3


def test_a_delay_of_the_message_is_kept_by_the_broker(the_shop: Shop) -> None:
    began = monotonic()

    result = the_shop.run("add", 1, 2, delay_seconds=5)

    assert the_shop.counts("shop")[2] == 1
    assert result_of(result) == 3
    assert monotonic() - began >= 5


def test_tasks_run_in_the_order_in_which_they_were_sent(the_shop: Shop) -> None:
    journal = the_shop.journal()

    for number in range(40):
        the_shop.run("note", journal, number)

    assert the_shop.wait_for_marks(journal, 40) == [str(n) for n in range(40)]


def test_tasks_of_a_group_of_a_fifo_queue_run_in_order(the_shop: Shop) -> None:
    red, blue = the_shop.journal(), the_shop.journal()

    for number in range(15):
        for journal in (red, blue):
            the_shop.run("note", journal, number, queue="orders.fifo", MessageGroupId=journal)

    assert the_shop.wait_for_marks(red, 15) == [str(n) for n in range(15)]
    assert the_shop.wait_for_marks(blue, 15) == [str(n) for n in range(15)]


def test_a_task_sent_twice_with_one_deduplication_id_runs_once(the_shop: Shop) -> None:
    journal = the_shop.journal()

    for _ in range(2):
        the_shop.run("note", journal, "once", queue="orders.fifo", MessageDeduplicationId=journal)
    the_shop.run("note", journal, "last", queue="orders.fifo")

    assert the_shop.wait_for_marks(journal, 2) == ["once", "last"]


def test_a_task_that_is_requeued_runs_again(the_shop: Shop) -> None:
    journal = the_shop.journal()

    result = the_shop.run("send_back", journal)

    assert result_of(result) == "done at last"
    assert the_shop.marks(journal) == [result.id, result.id]


def test_a_task_that_is_rejected_is_gone(the_shop: Shop) -> None:
    journal = the_shop.journal()

    the_shop.run("throw_away", journal)

    the_shop.wait_for_marks(journal, 1)
    the_shop.wait_until_empty("shop")
    assert the_shop.marks(journal) == ["seen"]


def test_a_task_that_is_rejected_too_often_goes_to_the_dead_letter_queue(the_shop: Shop) -> None:
    journal = the_shop.journal()

    the_shop.run("throw_away", journal, queue="oven")

    eventually(lambda: the_shop.counts(DEAD_LETTERS)[0] == 1, within_s=PATIENCE_S)
    assert the_shop.wait_for_marks(journal, 2) == ["seen", "seen"]


def test_a_body_as_large_as_celery_can_send_arrives_whole(the_shop: Shop) -> None:
    assert result_of(the_shop.run("measure", "x" * 580_000)) == 580_000


def test_a_larger_body_is_rejected_with_the_reason(the_shop: Shop) -> None:
    with pytest.raises(ClientError, match="Message must be shorter than 1048576 bytes") as refusal:
        the_shop.run("measure", "x" * 600_000)

    assert refusal.value.response["Error"]["Code"] == "InvalidParameterValue"


def test_tasks_make_groups_and_chains_of_tasks(the_shop: Shop) -> None:
    add = the_shop.app.tasks["add"]

    summed = chain(add.s(1, 2), add.s(3), add.s(4)).apply_async()
    doubled = group(add.s(n, n) for n in range(20)).apply_async()

    assert result_of(summed) == 10
    assert result_of(doubled) == [2 * n for n in range(20)]


def test_a_purge_empties_the_queue_and_returns_the_number_of_tasks(the_shop: Shop) -> None:
    for number in range(7):
        the_shop.run("note", the_shop.journal(), number, queue="cellar")

    with the_shop.app.connection_for_write() as connection:
        channel = connection.default_channel
        assert channel._size("cellar") == 7
        assert channel.queue_purge("cellar") >= 7
        assert channel._size("cellar") == 0
    assert the_shop.counts("cellar") == (0, 0, 0)
