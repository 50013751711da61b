"""Workers that are started for queues that do not exist."""

from __future__ import annotations

import pytest

from penstock.domain.errors import Forbidden
from penstock.worker.processes.startup import unknown_queues
from tests.edge.api import a_name

pytestmark = pytest.mark.environments("worker")


def test_an_unknown_name_is_reported_with_similar_ones(app, queue):
    app.queue(queue)
    stored = f"{a_name()}-invoices"
    app.enqueue("kind", {}, queue=stored)

    warnings = unknown_queues(app, (queue, f"{queue}x", stored, stored.replace("voi", "vio")))

    assert [text.partition("; ")[0] for text in warnings] == [
        f"queue {queue + 'x'!r} does not exist, so nothing is claimed from it",
        f"queue {stored.replace('voi', 'vio')!r} does not exist, so nothing is claimed from it",
    ]
    assert f"did you mean {queue!r}" in warnings[0]
    assert f"did you mean {stored!r}" in warnings[1]


def test_a_name_that_is_not_close_to_any_is_reported_with_those_that_are_known(app, queue):
    app.queue(queue)
    app.job_source()

    [warning] = unknown_queues(app, ("zzzzzzzzzzzzzzzzzzzz",))

    assert "; known are '" in warning


def test_a_key_that_may_not_list_queues_knows_those_of_the_application(app, queue, monkeypatch):
    def refuse(**_: object) -> list[str]:
        raise Forbidden("this key may not list queues")

    app.queue(queue)
    monkeypatch.setattr(app, "queue_names", refuse)

    [warning] = unknown_queues(app, (queue, f"{queue}x"))

    assert warning.startswith(f"queue {queue + 'x'!r} is not declared by the application; ")
    assert f"did you mean {queue!r}" in warning
