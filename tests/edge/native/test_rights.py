"""Access: every operation, called without a key, with a wrong key, each role, and other queues.

The table in docs/security.md has the expected results; the requests are the examples of the docs
page, which succeed for callers with access.  A new operation needs a new row.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from penstock.domain.access.api_key import Role
from penstock.domain.circuit.circuit import circuit_hash
from penstock.services.circuits import transitions
from tests.edge.api import NO_TLS, Api, ok
from tests.edge.conftest import NEVER_PUSHES, some_settings
from tests.edge.live import LiveServer
from tests.edge.native import rights_table
from tests.edge.native.conftest import new_key
from tests.edge.native.examples import Command, commands_of, prepare, read
from tests.edge.native.rights_table import Table
from tests.edge.native.rights_walk import Keys, Walk
from tests.edge.pipeline_tables import write_day, write_tuning
from tests.factories import a_fleet_status

SHOP = "/shop/(.*)"
CIRCUITS = "/queuecircuitbreaker/circuit"
OWN = ("mail", "orders", "orders.*", "tasks", "aweq")
OTHER = ("bank", "bank.*")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    settings = some_settings(
        tmp_path_factory.mktemp("rights"), auth={"required": "always"}, **NEVER_PUSHES
    )
    assert (settings.tasks.queue, settings.aweq.queue) == ("tasks", "aweq")
    with LiveServer(settings, has_duties=False) as started:
        folder = Path(started.broker.settings.insights_folder)
        write_day(folder, "slo", "2031-01-01", [{"queue": "mail", "bad": 1}])
        write_tuning(folder, "2031-01-01")
        now = started.broker.clock.now()
        started.broker.scaling.save_tick([a_fleet_status("mail", seen_at=now)], now=now).result()
        yield started
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def keys(server: LiveServer) -> Keys:
    def of(queues: tuple[str, ...]) -> dict[Role, str]:
        return {role: new_key(server, role, queues=queues) for role in Role}

    return Keys(of(("*",)), of(OWN), of(OTHER))


@pytest.fixture(scope="module")
def admin(server: LiveServer) -> Iterator[Api]:
    client = Api(server.url, key=new_key(server))
    yield client
    client.close()


@pytest.fixture(scope="module")
def wire(server: LiveServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, trust_env=False, timeout=30, verify=NO_TLS) as client:
        yield client


@pytest.fixture(scope="module")
def table() -> Table:
    return rights_table.written()


def test_every_operation_has_its_row(server: LiveServer, table: Table) -> None:
    expected = rights_table.of_code(server.broker)

    assert table == expected, "python -m tests.edge.native.rights_table"


def test_native_operations(
    server: LiveServer, admin: Api, wire: httpx.Client, keys: Keys, table: Table
) -> None:
    walk = Walk(wire, keys)
    commands = commands_of(wire.get("/docs").text)
    found = {
        operation["operationId"]: (method.upper(), path)
        for path, methods in admin.get("/v1/openapi.json")["paths"].items()
        for method, operation in methods.items()
    }
    assert set(commands) == set(found)

    variables = prepare(admin, "getMove")
    ok(admin.call("PUT", "/v1/recurring/nightly", {"queue": "mail", "cron": "30 2 * * *"}))
    for operation in _looks_first(found):
        place = found[operation]
        if place[0] != "GET":
            variables = prepare(admin, operation)
        command = _adapted(server, admin, operation, commands[operation], variables)
        walk.walk(" ".join(place), table[place], command)


def _looks_first(found: Mapping[str, tuple[str, str]]) -> list[str]:
    """Reads first: they change nothing, so that one preparation serves all of them."""
    return sorted(found, key=lambda operation: found[operation][0] != "GET")


def _adapted(
    server: LiveServer, admin: Api, operation: str, text: str, variables: dict[str, str]
) -> Command:
    """The example, changed to use only things of the queue `mail`."""
    if "Worker" in operation and operation != "registerWorker":
        variables["WORKER"] = ok(admin.call("POST", "/v1/workers", {"queues": ["mail"]}))["id"]
    if operation in ("listCircuits", "getCircuit", "getCircuitSamples"):
        _hold(server, "mail")
    command = read(text, **variables)
    if operation in ("askCircuits", "tellCircuits"):
        job = admin.send("mail", route="stripe", priority=-1)
        [claimed] = [m for m in admin.claim("mail", limit=10) if m["id"] == job]
        asked: dict[str, Any] = {"routes": ["stripe"], "ids": [claimed["id"]]}
        if operation == "tellCircuits":
            asked = {"outcomes": [{"route": "stripe", "id": job, "outcome": "success"}]}
        command = command._replace(body=json.dumps(asked))
    return command


def _hold(server: LiveServer, queue: str) -> None:
    circuit = circuit_hash(SHOP)

    def do(session: Any) -> None:
        session.circuits.lock({circuit: SHOP})
        transitions.hold(session, {circuit: [session.queues.find(queue).queue_no]}, now=1)

    server.broker.store.write(do).result()


AS_IT_IS = "what a GET answers"
CLOSE = '{"status": "closed"}'
RULES = json.dumps({SHOP: {"url": "http://127.0.0.1:9/$1"}})
PUSHED = {"x-queue": "orders.pushed"}
JSON = {"content-type": "application/json"}
# Other protocols and the pages: the called path, the body, the headers.
REQUESTS: dict[tuple[str, str], tuple[str, str | None, dict[str, str]]] = {
    ("GET", "/"): ("/", None, {}),
    ("GET", "/SimpleNotificationService.pem"): ("/SimpleNotificationService.pem", None, {}),
    ("GET", "/docs"): ("/docs", None, {}),
    ("GET", "/console"): ("/console", None, {}),
    ("GET", "/console/{page...}"): ("/console/queues", None, {}),
    ("GET", "/console/static/{file...}"): ("/console/static/none/app.js", None, {}),
    ("GET", "/console/session"): ("/console/session", None, {}),
    ("DELETE", "/console/session"): ("/console/session", None, {}),
    ("POST", "/send-message"): ("/send-message", '{"message": "x"}', JSON),
    ("GET", "/receive-message"): ("/receive-message", None, {}),
    ("DELETE", "/delete-message/{key}"): ("/delete-message/1", None, {}),
    ("GET", "/get-stats"): ("/get-stats", None, {}),
    **{
        ("OPTIONS", path): (path.replace("{key}", "1"), None, {})
        for path in ("/send-message", "/receive-message", "/delete-message/{key}", "/get-stats")
    },
    **{
        (method, "/push/{uri...}"): ("/push/shop/1", None, PUSHED)
        for method in ("DELETE", "OPTIONS", "PATCH", "POST", "PUT")
    },
    **{
        (method, path): (path, AS_IT_IS if method == "PUT" else None, {})
        for path in ("/admin/v1/circuitbreaker", "/admin/v1/logging", "/admin/v1/routing/rules")
        for method in ("GET", "PUT", "DELETE")
    },
    **{
        (method, path): (f"{CIRCUITS}/_all/status" if method == "PUT" else CIRCUITS, body, {})
        for path in (CIRCUITS, f"{CIRCUITS}/{{rest...}}")
        for method, body in (("GET", None), ("PUT", CLOSE))
    },
}
# Authorised callers get 405: there is nothing to do.
NOTHING = {("GET", "/push/{uri...}")} | {
    (method, path)
    for path in (CIRCUITS, f"{CIRCUITS}/{{rest...}}")
    for method in ("DELETE", "OPTIONS", "PATCH", "POST")
}
# A login needs a key in its body; test_logins.py covers it.
LOGIN = ("POST", "/console/session")


def test_other_protocols_and_pages(
    admin: Api, wire: httpx.Client, keys: Keys, table: Table
) -> None:
    walk = Walk(wire, keys)
    native = {
        (method.upper(), path)
        for path, methods in admin.get("/v1/openapi.json")["paths"].items()
        for method in methods
    }
    of_aws = {place for place in table if place[0] in ("SQS", "SNS")}
    assert set(REQUESTS) | NOTHING | {LOGIN} == set(table) - native - of_aws
    ok(admin.call("PUT", "/v1/queues/mail", {}))

    for place, (path, body, headers) in REQUESTS.items():
        if body == AS_IT_IS:
            body = admin.call("GET", path).text
        assert admin.call("PUT", "/admin/v1/routing/rules", json.loads(RULES)).is_success
        walk.walk(" ".join(place), table[place], Command(place[0], path, headers, body))
    for method, path in NOTHING:
        command = Command(method, path.replace("{rest...}", "_all"), PUSHED, None)
        role = table[method, path].role
        assert role is not None
        assert walk.call(command, None).status_code == 401
        assert walk.call(command, keys.everywhere[Role.CONSUME]).status_code == 403
        assert walk.call(command, keys.everywhere[role]).status_code == 405
