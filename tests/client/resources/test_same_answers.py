"""Operations that no client class covers: both channels return the same records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from penstock.api import administration, counters, history, overview
from penstock.api.counters import GetSamples
from penstock.api.history import SearchFacts
from penstock.api.operation import Operation, QueryRecord
from penstock.api.overview import ListProblems
from penstock.client.local.channel import LocalChannel
from penstock.client.remote.server import Remote
from penstock.client.remote.transport import Transport
from penstock.domain.access.api_key import Role
from penstock.domain.errors import InvalidRequest, PenstockError, QueueNotFound
from penstock.wiring.handlers import handlers_of
from tests.clocks import ManualClock
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer

pytestmark = pytest.mark.no_store("server")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    settings = some_settings(tmp_path_factory.mktemp("server") / "data")
    with LiveServer(settings, clock=ManualClock(), has_duties=False) as started:
        with Remote(started.url) as remote:
            remote.queues.put("mail")
            remote.send("mail", {})
            remote.queues.pause("mail")
            remote.workers.register()
        started.broker.keys.create("for the list", roles=(Role.READ,)).result()
        yield started


@pytest.fixture
def over_http(server: LiveServer) -> Transport:
    return Transport(server.url)


@pytest.fixture
def in_process(server: LiveServer) -> LocalChannel:
    return LocalChannel(handlers_of(server.broker))


@pytest.mark.parametrize(
    ("operation", "query", "path"),
    [
        (overview.STATS, None, {}),
        (overview.PROBLEMS, ListProblems(), {}),
        (counters.SAMPLES, GetSamples(step_ms=60_000), {}),
        (counters.QUEUE_SAMPLES, GetSamples(), {"queue": "mail"}),
        (history.SEARCH_FACTS, SearchFacts(limit=1), {}),
        (administration.LIST_KEYS, None, {}),
        (administration.GET_SETTINGS, None, {}),
    ],
    ids=lambda value: value.name if isinstance(value, Operation) else "",
)
def test_both_channels_give_the_same_record(
    over_http: Transport,
    in_process: LocalChannel,
    operation: Operation[Any],
    query: QueryRecord | None,
    path: dict[str, Any],
) -> None:
    answer = in_process.request(operation, query=query, **path)

    assert isinstance(answer, operation.answer)  # type: ignore[arg-type]
    assert answer == over_http.request(operation, query=query, **path)


def test_the_records_are_not_empty(in_process: LocalChannel) -> None:
    assert in_process.request(overview.STATS).counts.ready == 1
    [problems] = in_process.request(overview.PROBLEMS, query=ListProblems()).problems
    assert problems.queue == "mail"
    assert in_process.request(history.SEARCH_FACTS, query=SearchFacts()).facts
    assert [key.name for key in in_process.request(administration.LIST_KEYS).keys] == [
        "for the list"
    ]


@pytest.mark.parametrize(
    ("operation", "query", "path", "error"),
    [
        (overview.PROBLEMS, ListProblems(limit=0), {}, InvalidRequest),
        (counters.SAMPLES, GetSamples(step_ms=1_000), {}, InvalidRequest),
        (counters.SAMPLES, GetSamples(step_ms=60_000 * 10**12), {}, InvalidRequest),
        (counters.QUEUE_SAMPLES, GetSamples(), {"queue": "nowhere"}, QueueNotFound),
        (history.SEARCH_FACTS, SearchFacts(cursor="x"), {}, InvalidRequest),
        (history.SEARCH_FACTS, SearchFacts(from_="yesterday"), {}, InvalidRequest),
    ],
)
def test_both_channels_raise_the_same_error(
    over_http: Transport,
    in_process: LocalChannel,
    operation: Operation[Any],
    query: QueryRecord | None,
    path: dict[str, Any],
    error: type[PenstockError],
) -> None:
    with pytest.raises(error) as raised:
        over_http.request(operation, query=query, **path)
    with pytest.raises(error) as raised_here:
        in_process.request(operation, query=query, **path)

    assert str(raised.value) == str(raised_here.value)
