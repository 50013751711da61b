"""Live updates once a second, to every listener, limited to what its key may see."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

import pytest

from penstock.domain.access.api_key import Role
from tests.clocks import ManualClock
from tests.edge.api import Api, a_name, assert_refused
from tests.edge.conftest import MakeServer
from tests.edge.live import LiveServer
from tests.edge.native.conftest import LetIn, new_key
from tests.support.waiting import eventually

pytestmark = pytest.mark.both_stores


class Heard:
    """The events that one listener receives."""

    def __init__(self, lines: Iterator[str]) -> None:
        self._lines = lines

    def next(self) -> dict[str, Any]:
        for line in self._lines:
            if line.startswith("data: "):
                return dict(json.loads(line.removeprefix("data: ")))
        raise AssertionError("it ended")

    def until(self, queue: str) -> dict[str, Any]:
        """The queue in the next event that contains it."""
        for _ in range(20):
            for changed in self.next()["queues"]:
                if changed["name"] == queue:
                    return dict(changed)
        raise AssertionError(f"no event had {queue}")

    def rest(self) -> list[str]:
        """Everything that arrives until the stream ends."""
        return [line for line in self._lines if line]


@contextmanager
def listening(api: Api, path: str = "/v1/live") -> Iterator[Heard]:
    with api.http.stream("GET", path) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"
        yield Heard(answer.iter_lines())


def test_the_first_event_is_sent_at_once_and_is_complete(api: Api) -> None:
    with listening(api) as heard:
        news = heard.next()
    stats = api.get("/v1/stats")

    assert (news["counts"], news["totals"]) == (stats["counts"], stats["totals"])
    assert (news["queues"], news["is_cut"]) == ([], False)


def test_a_queue_is_in_the_feed_when_it_has_changed(api: Api, clock: ManualClock) -> None:
    name = api.make_queue()
    with listening(api) as heard:
        heard.next()  # this may be the state before the queue was created
        heard.next()
        api.send(name)
        first = heard.until(name)
        clock.advance(seconds=2)
        api.send_many(name, range(2))
        second = heard.until(name)

    assert first["counts"] == {"waiting": 0, "ready": 1, "leased": 0, "dead": 0}
    assert second["counts"]["ready"] == 3
    assert second["totals"]["sent"] == 3


def test_rates_are_how_many_in_a_second(make_server: MakeServer) -> None:
    clock = ManualClock()
    server = make_server(clock=clock)
    api = Api(server.url)
    name = api.make_queue()
    api.send(name)
    with listening(api) as heard:
        heard.next()
        heard.next()
        api.send_many(name, range(6))
        clock.advance(seconds=2)
        rates = [heard.next()["rates"]["sent"] for _ in range(4)]

    assert sum(rate * 2 if rate < 6 else rate for rate in rates) == 6, rates
    api.close()


def test_it_ends_after_as_many_events_as_were_asked_for(api: Api) -> None:
    with listening(api, "/v1/live?events=2") as heard:
        heard.next()
        heard.next()

        assert heard.rest() == []


@pytest.mark.parametrize("events", ["0", "-1", "x", "", "100001"])
def test_an_invalid_number_of_events_is_refused(api: Api, events: str) -> None:
    assert_refused(api.call("GET", f"/v1/live?events={events}"), 400, "invalid_request")


def test_a_key_for_some_queues_gets_events_of_those_only(let_in: LetIn) -> None:
    admin, limited = let_in(), let_in(Role.READ, queues=("mine-*",))
    mine, other = f"mine-{a_name()}", a_name("other")
    for name in (mine, other):
        admin.call("PUT", f"/v1/queues/{name}")
    with listening(limited) as heard, listening(admin) as all_heard:
        first = heard.next()
        all_heard.next()
        admin.send(other)
        admin.send(mine)
        seen = {changed["name"] for _ in range(3) for changed in heard.next()["queues"]}
        all_heard.until(mine)

    assert seen == {mine}
    assert (first["counts"], first["totals"], first["rates"]) == (None, None, None)


def test_at_most_the_limit_may_listen_at_one_time(make_server: MakeServer) -> None:
    server = make_server(limits={"max_listeners": 2})
    api = Api(server.url)
    with listening(api) as heard:
        heard.next()
        with listening(api) as other:
            other.next()
            assert_refused(api.call("GET", "/v1/live"), 429, "too_many_waiting")

    # A listener that leaves makes room.
    eventually(lambda: api.call("GET", "/v1/live?events=1").status_code == 200)
    api.close()


def test_a_head_request_is_answered_and_does_not_listen(api: Api) -> None:
    answer = api.call("HEAD", "/v1/live")

    assert (answer.status_code, answer.content) == (200, b"")


def test_a_stopping_server_lets_its_listeners_go(make_server: MakeServer) -> None:
    server = make_server(server={"drain_ms": 18_000})
    api = Api(server.url)
    with listening(api) as heard:
        heard.next()
        began = monotonic()
        server.stop()

        heard.rest()
        assert monotonic() - began < 12, "it does not wait for them to go"
    api.close()


def test_news_end_with_the_key_of_the_listener(server_with_keys: LiveServer) -> None:
    kept, lost = (
        Api(server_with_keys.url, key=new_key(server_with_keys, Role.READ)) for _ in range(2)
    )
    lost_id = lost.http.headers["Authorization"].split("_")[1]
    with listening(kept) as staying, listening(lost) as leaving:
        leaving.next()

        server_with_keys.broker.keys.revoke(lost_id).result()
        server_with_keys.broker.refresh_keys()

        leaving.rest()  # the stream ends
        staying.next()
        assert staying.next()["queues"] is not None
    for client in (kept, lost):
        client.close()
