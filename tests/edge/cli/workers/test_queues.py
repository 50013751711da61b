"""`penstock worker --burst` with jobs, notifications and events in several queues."""

from __future__ import annotations

import pytest

from penstock import Penstock
from penstock.client.remote.server import Remote
from tests.edge.cli.workers import many_queues_application
from tests.edge.cli.workers.job_lookup import PATIENCE_S

APP = "tests.edge.cli.workers.many_queues_application:app"


@pytest.fixture
def driver(any_url):
    many_queues_application.app.use(any_url)
    yield many_queues_application.app
    many_queues_application.app.close()


def test_a_burst_runs_each_handler_of_every_queue_once_and_exits(
    driver: Penstock, any_url, make_worker, tmp_path
):
    seen = tmp_path / "seen"
    for text in "abc":
        many_queues_application.mail.enqueue(str(seen), text)
        many_queues_application.report.enqueue(str(seen), text)
        driver.publish("orders", {"file": str(seen), "text": text})
        many_queues_application.billing.record({"file": str(seen), "text": text})
    many_queues_application.split.enqueue(str(seen), 2)
    many_queues_application.mail.using(delay="1h").enqueue(str(seen), "later")

    worker = make_worker(any_url, "--burst", "--processes", "2", app=APP)

    assert worker.wait(PATIENCE_S) == 0
    handlers = ("mail", "report", "bill", "audit", "mailer", "search")
    expected = [f"{handler} {text}" for handler in handlers for text in "abc"]
    expected += [f"split {n}" for n in (2, 1, 1, 0, 0, 0, 0)] + [f"mail {n}" for n in (2, 1, 1)]
    assert sorted(seen.read_text().splitlines()) == sorted(expected)
    assert "was rejected" not in worker.log.read_text()
    if any_url.startswith("http"):
        with Remote(any_url) as server:
            stats = server.stats()
        assert (stats.counts.ready, stats.counts.leased, stats.counts.waiting) == (0, 0, 1)
        assert stats.totals.done == len(expected)


@pytest.mark.parametrize("any_url", ["sqlite"], indirect=True)
def test_a_worker_names_its_queues_and_warns_of_those_that_do_not_exist(any_url, make_worker):
    flags = ("--burst", "--queues", "mial,mail", "--processes", "2")
    worker = make_worker(any_url, *flags, app=APP)

    assert worker.wait(PATIENCE_S) == 0
    assert worker.ready["queues"] == ["mial", "mail"]
    warning = "queue 'mial' does not exist, so nothing is claimed from it; did you mean 'mail'"
    assert worker.log.read_text().count(warning) == 1
