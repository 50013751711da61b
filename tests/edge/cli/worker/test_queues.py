"""`penstock worker` with jobs, notifications and events in several queues."""

from __future__ import annotations

import signal

import pytest

from penstock import Penstock
from penstock.client.remote import Remote
from tests.edge.cli.worker import office
from tests.edge.cli.worker.looking import PATIENCE_S
from tests.support.waiting import eventually

APP = "tests.edge.cli.worker.office:app"


@pytest.fixture
def desk(any_url):
    office.app.use(any_url)
    yield office.app
    office.app.close()


def test_each_handler_of_every_queue_runs_once(desk: Penstock, any_url, make_worker, tmp_path):
    seen = tmp_path / "seen"
    for text in "abc":
        office.mail.enqueue(str(seen), text)
        office.report.enqueue(str(seen), text)
        desk.publish("orders", {"file": str(seen), "text": text})
        office.billing.record({"file": str(seen), "text": text})
    worker = make_worker(any_url, app=APP)

    eventually(
        lambda: seen.exists() and len(seen.read_text().splitlines()) >= 18, within_s=PATIENCE_S
    )
    worker.send(signal.SIGTERM)

    assert worker.wait() == 0
    handlers = ("mail", "report", "bill", "audit", "mailer", "search")
    assert sorted(seen.read_text().splitlines()) == sorted(
        f"{handler} {text}" for handler in handlers for text in "abc"
    )
    assert "was not taken" not in worker.log.read_text()
    if any_url.startswith("http"):
        with Remote(any_url) as server:
            stats = server.stats()
        assert (stats.counts.ready, stats.counts.leased, stats.totals.done) == (0, 0, 18)
