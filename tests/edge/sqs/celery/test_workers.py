"""Special workers: with many queues, killed while working, asked to stop."""

from __future__ import annotations

from tests.edge.api import a_name
from tests.edge.sqs.celery.conftest import PATIENCE_S, OpenShop, result_of
from tests.support.waiting import eventually

MORE_THAN_IT_CAN_ASK_AT_ONCE = 12  # Celery has ten requests open at one time


def test_one_worker_serves_many_queues(open_shop: OpenShop) -> None:
    shop = open_shop()
    queues = [a_name("shelf") for _ in range(MORE_THAN_IT_CAN_ASK_AT_ONCE)]
    results = [shop.run("add", n, m, queue=q) for n, q in enumerate(queues) for m in range(5)]

    with shop.worker(*queues):
        sums = [result_of(result) for result in results]
        for queue in queues:
            shop.wait_until_empty(queue)

    assert sums == [n + m for n in range(len(queues)) for m in range(5)]


def test_the_task_of_a_killed_worker_runs_again(open_shop: OpenShop) -> None:
    shop, queue = open_shop(visibility_timeout=10), a_name("fragile")
    journal = shop.journal()
    result = shop.run("hang_once", journal, queue=queue)
    with shop.worker(queue) as first:
        shop.wait_for_marks(journal, 1)
        first.kill()
    assert shop.counts(queue)[1] == 1

    with shop.worker(queue):
        assert result_of(result) == "survived"
        shop.wait_until_empty(queue)

    assert shop.marks(journal) == ["begun", "begun"]


def test_tasks_that_a_stopped_worker_had_fetched_are_visible_at_once(open_shop: OpenShop) -> None:
    shop, queue = open_shop(visibility_timeout=3600), a_name("calm")
    journal, sign = shop.journal(), "go-on"
    shop.run("wait_for", journal, sign, queue=queue)
    results = [shop.run("add", 1, n, queue=queue) for n in range(3)]
    with shop.worker(queue) as first:
        shop.wait_for_marks(journal, 1)
        eventually(lambda: shop.counts(queue) == (0, 3, 0), within_s=PATIENCE_S)
        first.stop(meanwhile=(shop.folder / sign).touch)

    with shop.worker(queue):
        assert [result_of(result) for result in results] == [1, 2, 3]
        shop.wait_until_empty(queue)
