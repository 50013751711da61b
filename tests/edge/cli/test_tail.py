"""`penstock tail` reports every ending once and in order, however it becomes visible."""

from __future__ import annotations

import pytest

from penstock.client.remote.server import Remote
from penstock.edge.cli.broker.stats import Follower
from tests.edge.api import Api

pytestmark = pytest.mark.both_stores


@pytest.fixture
def remote(server):
    with Remote(server.url) as remote:
        yield remote


def test_endings_are_reported_once_and_in_order(remote, api: Api, clock):
    name = api.make_queue()
    api.finish(name)
    follower = Follower(remote, name)
    follower.latest(10)

    clock.advance(seconds=1)
    first = [api.finish(name), api.finish(name)]
    reported_first = [ending.id for ending in follower.new_endings()]
    clock.advance(seconds=1)
    second = api.finish(name)
    reported_second = [ending.id for ending in follower.new_endings()]

    assert reported_first == first
    assert reported_second == [second]
    assert follower.new_endings() == []


def test_an_ending_at_the_instant_of_the_last_one_is_not_missed(remote, api: Api):
    name = api.make_queue()
    api.finish(name)
    follower = Follower(remote, name)
    follower.latest(10)

    late = api.finish(name)

    assert [ending.id for ending in follower.new_endings()] == [late]


def test_a_queue_without_history_is_followed_from_now_on(remote, api: Api, clock):
    name = api.make_queue()
    follower = Follower(remote, name)

    assert follower.latest(0) == []
    clock.advance(seconds=1)
    finished = api.finish(name)
    assert [ending.id for ending in follower.new_endings()] == [finished]


def test_past_endings_are_not_reported_without_lines(remote, api: Api):
    name = api.make_queue()
    api.finish(name)
    follower = Follower(remote, name)

    assert follower.latest(0) == []
    assert follower.new_endings() == []


def test_all_queues_are_followed_together(remote, api: Api, clock):
    follower = Follower(remote, None)
    follower.latest(1)

    clock.advance(seconds=1)
    finished = [api.finish(api.make_queue()), api.finish(api.make_queue())]

    assert [ending.id for ending in follower.new_endings()] == finished
    assert follower.counts().ready >= 0


def test_forgotten_endings_lie_outside_every_later_poll(remote, api: Api, clock):
    name = api.make_queue()
    follower = Follower(remote, name)
    follower.latest(0)

    seen = []
    for _ in range(20):
        clock.advance(seconds=3)
        api.finish(name)
        seen += [ending.id for ending in follower.new_endings()]

    assert len(seen) == len(set(seen)) == 20
