"""`penstock worker` from start to end, on every store."""

from __future__ import annotations

import signal

import pytest

from tests.edge.cli.workers import application
from tests.edge.cli.workers.job_lookup import PATIENCE_S, message
from tests.support.processes import is_alive
from tests.support.waiting import eventually


def test_sync_and_async_jobs_run_side_by_side(any_app, any_url, make_worker, tmp_path):
    seen = tmp_path / "seen"
    for n in range(20):
        (application.write_async if n % 2 else application.write).enqueue(str(seen), str(n))
    worker = make_worker(any_url, "--slots", "3", "--processes", "2")

    eventually(lambda: _lines(seen) == 20, within_s=PATIENCE_S)
    assert len(worker.children) == 2
    worker.send(signal.SIGTERM)

    assert worker.wait() == 0
    assert sorted(map(int, seen.read_text().split())) == list(range(20))
    assert not any(map(is_alive, worker.children))


@pytest.mark.both_stores
def test_a_job_may_take_longer_than_its_lease(app, url, make_worker, tmp_path):
    seen, gate = tmp_path / "seen", tmp_path / "gate"
    sent = application.wait_for.enqueue(str(seen), str(gate))
    make_worker(url, "--lease", "3s")
    eventually(lambda: _lines(seen) == 1, within_s=PATIENCE_S)
    begun = message(app, sent.id)
    assert begun is not None

    eventually(lambda: _due_at(app, sent.id) > begun.due_at + 3_000, within_s=PATIENCE_S)
    gate.touch()
    eventually(lambda: message(app, sent.id) is None, within_s=PATIENCE_S)

    assert _lines(seen) == 2  # begun and ended once


@pytest.mark.both_stores
def test_sigterm_lets_running_jobs_finish_and_releases_claimed_ones_without_an_attempt(
    app, url, make_worker, tmp_path
):
    seen, gate = tmp_path / "seen", tmp_path / "gate"
    running = application.wait_for.enqueue(str(seen), str(gate))
    waiting = [application.write.enqueue(str(tmp_path / "other"), str(n)) for n in range(3)]
    worker = make_worker(url, "--slots", "1", "--prefetch", "3")
    eventually(lambda: _lines(seen) == 1, within_s=PATIENCE_S)
    eventually(lambda: _state(app, waiting[-1].id) == "leased", within_s=PATIENCE_S)

    worker.send(signal.SIGTERM)
    eventually(lambda: _state(app, waiting[-1].id) == "ready", within_s=PATIENCE_S)
    assert message(app, running.id) is not None
    gate.touch()
    assert worker.wait() == 0

    assert message(app, running.id) is None
    assert "end stopping=True" in seen.read_text()
    left = [message(app, job.id) for job in waiting]
    assert [m and (m.state, m.attempts) for m in left] == [("ready", 0)] * 3


def test_a_job_that_does_not_finish_while_draining_is_released_and_loses_no_attempt(
    app, url, make_worker, tmp_path
):
    seen = tmp_path / "seen"
    sent = application.wait_for.enqueue(str(seen), str(tmp_path / "never"))
    worker = make_worker(url, "--drain-for", "300ms")
    eventually(lambda: _lines(seen) == 1, within_s=PATIENCE_S)

    worker.send(signal.SIGTERM)
    assert worker.wait() == 0

    left = message(app, sent.id)
    assert left is not None
    assert (left.state, left.attempts) == ("ready", 0)


def test_a_second_interrupt_stops_it_at_once(app, url, make_worker, tmp_path):
    seen = tmp_path / "seen"
    application.wait_for.enqueue(str(seen), str(tmp_path / "never"))
    worker = make_worker(url, "--drain-for", "1h")
    eventually(lambda: _lines(seen) == 1, within_s=PATIENCE_S)

    worker.send(signal.SIGINT)
    eventually(lambda: "shutting down" in worker.log.read_text())
    worker.send(signal.SIGINT)

    assert worker.wait() == 0


def test_a_worker_that_is_drained_through_the_registry_exits_cleanly(
    app, url, make_worker, tmp_path
):
    seen = tmp_path / "seen"
    application.write.enqueue(str(seen), "done")
    worker = make_worker(url, "--beat", "200ms")
    eventually(lambda: _lines(seen) == 1, within_s=PATIENCE_S)
    registry = app._lazy_backend.get().broker.workers
    [registered] = registry.all().result()

    registry.drain(registered.id).result()

    assert worker.wait() == 0
    assert registry.all().result() == []


def test_a_worker_has_the_given_labels(app, url, make_worker):
    make_worker(url, "--label", "fleet=mail", "--label", "zone=a=b")

    registry = app._lazy_backend.get().broker.workers
    [registered] = eventually(lambda: registry.all().result(), within_s=PATIENCE_S)

    own = {name: text for name, text in registered.labels.items() if "penstock." not in name}
    assert own == {"fleet": "mail", "zone": "a=b"}


def test_a_label_without_a_name_or_a_text_is_refused(app, url, make_worker):
    worker = make_worker(url, "--label", "fleet")

    assert worker.wait() == 2
    assert "--label 'fleet' is not NAME=TEXT" in worker.log.read_text()


def _lines(file) -> int:
    return len(file.read_text().splitlines()) if file.exists() else 0


def _state(app, message_id: str) -> str | None:
    found = message(app, message_id)
    return None if found is None else found.state


def _due_at(app, message_id: str) -> int:
    found = message(app, message_id)
    return 0 if found is None else found.due_at
