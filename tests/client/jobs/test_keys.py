"""What an application with a limited key may do on a server."""

from __future__ import annotations

import pytest

from penstock import Penstock
from penstock.domain.access.api_key import Role
from penstock.domain.errors import InvalidRequest, Unauthenticated
from penstock.domain.queue.queue import QueueSettings
from tests.edge.conftest import make_server  # noqa: F401 (a fixture)
from tests.support.waiting import eventually

pytestmark = pytest.mark.no_store("server")


@pytest.fixture
def server(make_server):  # noqa: F811
    return make_server(auth={"required": "always"})


@pytest.fixture
def key(server):
    roles = (Role.PRODUCE, Role.CONSUME)
    made = server.broker.keys.create("app", roles=roles, queues=("*",)).result()
    eventually(lambda: server.broker.keyring.signer(made.key.key_id))  # keys are read once a second
    return made.secret


def test_without_a_key_nothing_is_enqueued(server):
    with Penstock(server.url) as app, pytest.raises(Unauthenticated):
        app.enqueue("mail", {})


def test_a_key_that_may_not_create_queues_gets_an_error_that_says_so(server, key):
    with Penstock(server.url, key=key) as app, pytest.raises(InvalidRequest, match="role operate"):
        app.enqueue("mail", {}, queue="not-there")


def test_a_key_that_may_not_change_queues_uses_them_as_they_are(server, key, caplog):
    server.broker.queues.put("mail", QueueSettings(max_attempts=2)).result()

    with Penstock(server.url, key=key) as app:
        app.queue("mail", max_attempts=9)
        sent = app.enqueue("mail", {}, queue="mail")
        found, _ = app.job_source().claim(["mail"], limit=1, lease_ms=1_000, worker_id="w")

    assert [work.id for work in found] == [sent.id]
    assert "queue 'mail' keeps its settings" in caplog.text
    assert server.broker.queues.get("mail").result().queue.settings.max_attempts == 2
