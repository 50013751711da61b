"""/healthz names the parts that do not work, and /readyz reports whether the store accepts work."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from penstock.edge.native.operations.live import LiveFeed
from penstock.edge.server.traffic import Traffic
from tests.edge.api import Api, assert_refused, ok
from tests.edge.conftest import InBackground, MakeServer
from tests.edge.live import LiveServer
from tests.support.waiting import eventually

WAIT_S = 30


@pytest.fixture
def served(make_server: MakeServer) -> LiveServer:
    return make_server()


@pytest.fixture
def own_api(served: LiveServer) -> Api:
    return Api(served.url)


@pytest.fixture
def long_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed part stays down long enough to be seen."""
    monkeypatch.setattr("penstock.supervision.threads.FIRST_PAUSE_S", 1.0)


def failing_once(does: Callable[..., Any], *, per_object: bool = False) -> Callable[..., Any]:
    """`per_object`: a method, which other servers of this process call as well."""
    failed: set[object] = set()

    def fail(*args: Any, **more: Any) -> Any:
        owner = args[0] if per_object else None
        if owner not in failed:
            failed.add(owner)
            raise ValueError("unexpected")
        return does(*args, **more)

    return fail


def parts_in_trouble(api: Api) -> list[tuple[str, str]]:
    answer = api.call("GET", "/healthz")
    parts = answer.json().get("parts", [])
    assert answer.status_code == (503 if parts else 200), answer.text
    assert answer.json()["status"] == ("failing" if parts else "ok")
    return [(part["name"], part["state"]) for part in parts]


def test_a_writer_that_fails_is_named_until_it_runs_again(
    served: LiveServer, own_api: Api, monkeypatch, long_pause
) -> None:
    queue = own_api.make_queue()
    [writer] = served.broker.store._commits._lanes  # type: ignore[attr-defined]
    served.broker._loop.stop()  # its writes would hit the error first
    monkeypatch.setattr(writer, "_commit", failing_once(writer._commit))

    refused = own_api.call("POST", f"/v1/queues/{queue}/messages", {"body": 1})

    assert_refused(refused, 503, "store_unavailable")
    assert int(refused.headers["retry-after"]) > 0
    assert parts_in_trouble(own_api) == [("writer", "failed")]
    eventually(lambda: not parts_in_trouble(own_api))
    assert ok(own_api.call("POST", f"/v1/queues/{queue}/messages", {"body": 2}))["id"]


def test_duties_that_fail_are_named_until_they_run_again(
    served: LiveServer, own_api: Api, monkeypatch, long_pause, caplog
) -> None:
    loop = served.broker._loop
    monkeypatch.setattr(loop, "run_due", failing_once(loop.run_due))

    assert eventually(lambda: parts_in_trouble(own_api)) == [("duties", "failed")]

    eventually(lambda: not parts_in_trouble(own_api))
    assert "duties failed and is being restarted" in caplog.text


def test_a_pusher_that_fails_is_named_until_it_runs_again(
    served: LiveServer, own_api: Api, monkeypatch, long_pause, caplog
) -> None:
    pushing = served.broker._pushing
    assert pushing is not None
    monkeypatch.setattr(pushing.pusher, "tick", failing_once(pushing.pusher.tick))
    pushing._wakeup.wake()

    assert eventually(lambda: parts_in_trouble(own_api)) == [("pusher", "failed")]

    eventually(lambda: not parts_in_trouble(own_api))
    assert "pusher failed and is being restarted" in caplog.text


def test_a_sweeper_that_fails_is_named_until_it_runs_again(
    served: LiveServer, own_api: Api, monkeypatch, long_pause, caplog
) -> None:
    monkeypatch.setattr(Traffic, "sweep", failing_once(Traffic.sweep, per_object=True))

    assert eventually(lambda: parts_in_trouble(own_api)) == [("sweeper", "failed")]

    eventually(lambda: not parts_in_trouble(own_api))
    assert "sweeper failed and is being restarted" in caplog.text


def test_the_stream_continues_after_a_mistake(
    served: LiveServer, own_api: Api, monkeypatch, caplog
) -> None:
    monkeypatch.setattr(LiveFeed, "_send", failing_once(LiveFeed._send, per_object=True))

    answer = own_api.call("GET", "/v1/live?events=1")

    [data] = [line for line in answer.text.splitlines() if line.startswith("data: ")]
    assert json.loads(data.removeprefix("data: "))
    assert "live failed and is being restarted" in caplog.text


def test_a_store_that_hangs_is_not_ready_and_the_process_is_still_healthy(
    served: LiveServer, own_api: Api, in_background: InBackground
) -> None:
    store, is_in, may_go = served.broker.store, threading.Event(), threading.Event()
    watchdog = store._watchdog  # type: ignore[attr-defined]
    watchdog.close()  # its own looks, at an earlier time, would undo those of the test
    times = itertools.count(1 << 40, 1 << 40)

    def hang(_: Any) -> None:
        is_in.set()
        may_go.wait(WAIT_S)

    held = in_background(lambda: store.write(hang).result(WAIT_S))
    assert is_in.wait(WAIT_S)

    assert_refused(own_api.call("GET", "/readyz"), 503, "store_unavailable")
    assert parts_in_trouble(own_api) == []
    watchdog.look(next(times))
    watchdog.look(next(times))
    # Duties also wait for the store, if they are due.
    assert ("writer", "stuck") in parts_in_trouble(own_api)

    may_go.set()
    eventually(lambda: own_api.call("GET", "/readyz").status_code == 200)

    def is_well() -> bool:
        watchdog.look(next(times))
        return not parts_in_trouble(own_api)

    eventually(is_well)  # duties may still have to finish what waited for the store
    assert held.exception(WAIT_S) is not None
