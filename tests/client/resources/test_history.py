"""History through both channels of a client: the same calls, the same records."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.client.remote.server import Remote
from penstock.client.resources.messages import HistoryClient
from penstock.domain.datetimes import moment_of
from penstock.domain.errors import InvalidRequest, MessageNotFound
from penstock.domain.message.history import AttemptOutcome
from penstock.domain.message.lifecycle import State
from penstock.operations.history import HistoryOperations
from tests.client.resources.conftest import Connect
from tests.clocks import NOON
from tests.edge.live import LiveServer

pytestmark = pytest.mark.no_store("server")


@pytest.fixture
def ids(server: LiveServer) -> list[str]:
    """Three messages that are done; the first failed once before."""
    with Remote(server.url) as remote:
        remote.queues.put("mail", {"backoff": {"type": "fixed", "delay_ms": 0}})
        sent = [
            remote.send("mail", {}, kind="welcome", tags=("a", "b")).id,
            *(remote.send("mail", {}).id for _ in range(2)),
        ]
        [first] = remote.claim("mail", claimed_by="ada")
        remote.fail(first.receipt or "", error="smtp: 421")
        for message in remote.claim("mail", limit=3):
            remote.complete(message.receipt or "")
        return sent


@pytest.fixture
def history(connect: Connect, server: LiveServer) -> HistoryClient:
    return HistoryClient(connect(HistoryOperations(server.broker.history).handlers()))


def test_endings_are_found_page_by_page(history: HistoryClient, ids: list[str]) -> None:
    found = list(history.search(queue="mail", page_size=2, outcome=State.DONE))

    assert sorted(ending.id for ending in found) == sorted(ids)
    assert [ending.id for ending in history.search(kind="welcome", tag="b")] == ids[:1]
    assert list(history.search(outcome=State.DEAD)) == []


def test_endings_are_found_by_time(history: HistoryClient, ids: list[str]) -> None:
    noon = moment_of(NOON)

    assert len(list(history.search(from_at=noon, to_at=noon + timedelta(seconds=1)))) == 3
    assert list(history.search(to_at=noon)) == []
    assert list(history.search(from_at=noon + timedelta(seconds=1))) == []


def test_one_message_is_looked_up_with_its_attempts(history: HistoryClient, ids: list[str]) -> None:
    past = history.of(ids[0])

    [ending], [attempt] = past.endings, past.attempts
    assert (ending.outcome, ending.attempts, ending.tags) == (State.DONE, 2, ("a", "b"))
    assert ending.finished_at == moment_of(NOON)
    assert (attempt.outcome, attempt.leased_by) == (AttemptOutcome.FAILED, "ada")
    assert attempt.error == "smtp: 421"


def test_invalid_requests_are_rejected(history: HistoryClient) -> None:
    with pytest.raises(InvalidRequest, match="outcome"):
        history.page(outcome=State.READY)
    with pytest.raises(InvalidRequest, match="cursor"):
        history.page(cursor="x")
    with pytest.raises(InvalidRequest, match="limit"):
        history.page(limit=0)
    with pytest.raises(MessageNotFound):
        history.of("00000000-0000-7000-8000-000000000000")
