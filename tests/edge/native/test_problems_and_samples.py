"""Problems and samples over HTTP."""

from __future__ import annotations

import psycopg
import pytest

from penstock.domain.access.api_key import Role
from penstock.domain.queue import problem
from penstock.domain.store import upkeep
from penstock.edge.instants import to_text
from tests.clocks import ManualClock
from tests.edge.api import Api, a_name, assert_refused
from tests.edge.conftest import MakeServer
from tests.edge.duties import sample
from tests.edge.live import LiveServer
from tests.edge.native.conftest import LetIn
from tests.edge.native.test_metrics import scrape
from tests.support.waiting import eventually

pytestmark = pytest.mark.both_stores


def problem_of(api: Api, queue: str) -> dict | None:
    found = api.get("/v1/problems", limit=1_000)["problems"]
    return next((one for one in found if one["queue"] == queue), None)


def test_a_queue_with_dead_messages_is_a_problem(api: Api) -> None:
    name = api.make_queue()
    assert problem_of(api, name) is None
    api.die(name)

    assert problem_of(api, name) == {
        "queue": name,
        "problems": ["dead"],
        "counts": {"waiting": 0, "ready": 0, "leased": 0, "dead": 1},
        "oldest_ready_at": None,
        "is_paused": False,
        "held_by": None,
    }


def test_a_limited_list_of_problems_is_marked_as_cut(api: Api) -> None:
    for _ in range(2):
        api.die(api.make_queue())

    few = api.get("/v1/problems", limit=1)

    assert (len(few["problems"]), few["is_cut"]) == (1, True)


def test_a_key_for_some_queues_sees_only_their_problems(let_in: LetIn) -> None:
    admin, limited = let_in(), let_in(Role.READ, queues=("mine-*",))
    mine, other = f"mine-{a_name()}", a_name("other")
    for name in (mine, other):
        admin.call("PUT", f"/v1/queues/{name}")
        admin.die(name)

    assert [one["queue"] for one in limited.get("/v1/problems")["problems"]] == [mine]
    assert problem_of(admin, other) is not None


def test_a_route_that_hangs_is_named_with_its_endpoint(api: Api, clock: ManualClock) -> None:
    pattern = f"/{a_name()}/(.*)"
    rules = {"rules": {pattern: {"url": "http://127.0.0.1:9/hidden/$1"}}}
    assert api.call("PUT", "/v1/routes", rules).status_code == 200
    queue = a_name("slow")
    body = {"queue": queue, "uri": pattern.replace("(.*)", "x")}
    assert api.call("POST", "/v1/deliveries", body).status_code == 202
    claimed = api.claim_one(queue)  # as the pusher does
    began = to_text(clock.now())
    clock.advance(seconds=10)

    found = api.get("/v1/problems")["hanging_routes"]

    assert found == [
        {"route": pattern, "endpoint": "http://127.0.0.1:9", "deliveries": 1, "since": began}
    ]
    api.act(claimed["receipt"], "complete")
    assert api.get("/v1/problems")["hanging_routes"] == []
    assert api.call("DELETE", "/admin/v1/routing/rules").status_code == 200


def test_a_transaction_that_holds_back_vacuum_is_named_with_its_session(
    api: Api, server: LiveServer, let_in: LetIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(problem, "OLD_TRANSACTION_AFTER_MS", -(10**15))  # whatever the clock says
    if server.backend == "sqlite":
        assert api.get("/v1/problems")["old_transactions"] == []
        return
    url = server.broker.settings.store.url or ""
    with psycopg.connect(url, application_name='monthly "report"') as client:
        client.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        client.execute("SELECT 1 FROM queue")
        pid = client.info.backend_pid

        found = api.get("/v1/problems")["old_transactions"]
        shown = scrape(api)

    [one] = [one for one in found if one["pid"] == pid]
    since, transactions = one.pop("since"), one.pop("transactions")
    assert since is not None
    assert one.pop("query_since") is not None
    assert transactions >= 0
    assert one == {
        "kind": "session",
        "pid": pid,
        "name": None,
        "application": 'monthly "report"',
        "user": "postgres",
        "state": "idle in transaction",
    }
    labels = {"kind": "session", "pid": str(pid), "user": "postgres"}
    assert shown.value("penstock_old_transaction_seconds", **labels) >= 0
    assert shown.value("penstock_oldest_transaction_seconds") >= 0
    assert let_in(Role.READ, queues=("a",)).get("/v1/problems")["old_transactions"] == []


def test_tables_with_many_dead_rows_are_named(
    api: Api, server: LiveServer, let_in: LetIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "MANY_DEAD_ROWS", 0)
    monkeypatch.setattr(upkeep, "FULL_NOTIFICATIONS", 0)

    found = api.get("/v1/problems")

    if server.backend != "postgres":
        assert (found["bloated_tables"], found["notification_queue"]) == ([], None)
        return
    [message] = [one for one in found["bloated_tables"] if one["table"] == "message"]
    assert message["rows"] >= 0
    assert 0 <= found["notification_queue"] < 0.5  # other tests of this PostgreSQL notify, too
    shown = scrape(api)
    assert shown.value("penstock_table_dead_rows", table="message") >= 0
    assert 0 <= shown.value("penstock_notification_queue_ratio") < 0.5
    limited = let_in(Role.READ, queues=("a",)).get("/v1/problems")
    assert (limited["bloated_tables"], limited["notification_queue"]) == ([], None)


def test_a_graph_has_a_point_for_each_minute(
    api: Api, server: LiveServer, clock: ManualClock
) -> None:
    clock.advance(hours=2)
    sample(server)
    name = api.make_queue()
    api.send(name)
    clock.advance(minutes=1)
    sample(server)
    api.finish(name)
    clock.advance(minutes=1)
    sample(server)

    graph = api.get(f"/v1/queues/{name}/samples")

    assert graph["step_ms"] == 60_000
    assert [point["ready"] for point in graph["points"]] == [1, 1]
    assert [point["happened"]["sent"] for point in graph["points"]] == [1, 1]
    assert [point["happened"]["done"] for point in graph["points"]] == [0, 1]
    assert graph["points"][-1]["work_p50_ms"] == 0
    assert len(api.get("/v1/samples")["points"]) >= 2


def test_a_server_samples_by_itself(make_server: MakeServer) -> None:
    clock = ManualClock()
    api = Api(make_server(clock=clock).url)
    name = api.make_queue()
    api.send(name)

    clock.advance(minutes=1)

    assert eventually(lambda: api.get(f"/v1/queues/{name}/samples")["points"])


@pytest.mark.parametrize(
    "query",
    [
        "from=2030-01-02T00:00:00Z&to=2030-01-01T00:00:00Z",
        "step_ms=1000",
        "step_ms=x",
        "from=1999-01-01T00:00:00Z&step_ms=60000",
        "every=1",
        "from=yesterday",
    ],
)
def test_an_invalid_span_is_refused(api: Api, query: str) -> None:
    assert_refused(api.call("GET", f"/v1/samples?{query}"), 400, "invalid_request")


def test_a_queue_that_is_not_there_has_no_graph(api: Api) -> None:
    answer = api.call("GET", "/v1/queues/nowhere/samples")

    assert_refused(answer, 404, "queue_not_found")


def test_samples_of_all_queues_need_a_key_for_all_queues(let_in: LetIn) -> None:
    limited = let_in(Role.READ, queues=("mine-*",))

    assert_refused(limited.call("GET", "/v1/samples"), 403, "forbidden")
    assert_refused(limited.call("GET", "/v1/queues/other/samples"), 403, "forbidden")
    assert limited.call("GET", "/v1/queues/mine-1/samples").status_code == 404
