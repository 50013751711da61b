"""The OpenAPI document: valid, complete and accurate."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import validate

from penstock.api.operation import PATH_PARAMETERS, Operation
from penstock.edge.routes import routes
from penstock.edge.server.errors import STATUS
from penstock.edge.server.router import HttpRoute
from penstock.runtime.waiting_claims import WaitingClaims
from tests.edge.api import Api
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer
from tests.edge.native.examples import commands_of, prepare, read
from tests.edge.pipeline_tables import write_day, write_tuning
from tests.factories import a_fleet_status

PAGE = Path(__file__).parents[3] / "docs" / "http-api.md"
NOT_OF_AN_OPERATION = {"method_not_allowed", "too_many_connections"}

_ROW = re.compile(r"^\| (`[A-Z]+ /.*?) \|", re.MULTILINE)
_FIRST = re.compile(r"`([A-Z]+) (/[^`?]*)(\?[^`]*)?`")
_NEXT = re.compile(r", `(/[a-z]+)`")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    settings = some_settings(tmp_path_factory.mktemp("openapi"))
    with LiveServer(settings, has_duties=False) as server:
        yield server


@pytest.fixture(scope="module")
def api(served: LiveServer) -> Iterator[Api]:
    client = Api(served.url)
    yield client
    client.close()


@pytest.fixture
def _fleet(served: LiveServer) -> None:
    """A fleet whose autoscaler has just run."""
    now = served.broker.clock.now()
    served.broker.scaling.save_tick([a_fleet_status("mail", seen_at=now)], now=now).result()


@pytest.fixture(scope="module")
def document(api: Api) -> dict[str, Any]:
    return dict(api.get("/v1/openapi.json"))


@pytest.fixture(scope="module")
def native(served: LiveServer) -> list[Operation[Any]]:
    async def all_routes() -> list[HttpRoute]:
        broker = served.broker
        waiting = WaitingClaims(broker.messages, broker.clock, most=1, poll_ms=1)
        return routes(broker, waiting)

    return [route.operation for route in asyncio.run(all_routes()) if route.operation]


def test_it_is_a_valid_document(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1.")
    validate(document)


def test_every_native_operation_is_in_it(
    document: dict[str, Any], native: list[Operation[Any]]
) -> None:
    documented = {(method.upper(), path) for method, path, _ in operations(document)}

    assert documented == {(operation.method, operation.path) for operation in native}


def test_the_page_in_docs_lists_the_same_operations(native: list[Operation[Any]]) -> None:
    expected = {
        (operation.method, operation.path): set(
            operation.query.__struct_encode_fields__ if operation.query else ()
        )
        for operation in native
    }

    assert written_operations(PAGE.read_text()) == expected


def test_names_are_given_once(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, _, operation in operations(document)]

    assert all(re.fullmatch(r"[a-z][A-Za-z]+", name) for name in names), names
    assert len(names) == len(set(names))


def test_every_summary_is_a_sentence(document: dict[str, Any]) -> None:
    summaries = [operation["summary"] for _, _, operation in operations(document)]

    assert [text for text in summaries if not text.endswith(".")] == []


def test_every_field_has_a_description(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"].items()
    fields = {(name, field): of for name, schema in schemas for field, of in fields_of(schema)}

    assert [place for place, of in fields.items() if not of.get("description")] == []


def test_every_declared_path_parameter_is_used(document: dict[str, Any]) -> None:
    used = {
        parameter["name"]
        for _, _, operation in operations(document)
        for parameter in operation["parameters"]
        if parameter["in"] == "path"
    }

    assert set(PATH_PARAMETERS) == used


def test_every_code_of_an_error_can_be_looked_up(document: dict[str, Any]) -> None:
    written = set(re.findall(r"`(\w+)`", table_of_errors(PAGE.read_text())))
    documented = {
        code
        for _, _, operation in operations(document)
        for answer in operation["responses"].values()
        for code in re.findall(r"`(\w+)`", answer["description"])
    }

    assert written - documented == NOT_OF_AN_OPERATION
    assert documented <= {error.code for error in STATUS}


def test_operations_with_a_role_need_a_key_and_others_do_not(
    document: dict[str, Any], native: list[Operation[Any]]
) -> None:
    roles = {operation.name: operation.role for operation in native}
    documented = {op["operationId"]: op.get("security") for _, _, op in operations(document)}

    for name, role in roles.items():
        assert documented[name] == (None if role is None else [{"apiKey": [role.value]}])


def test_operations_name_the_scope_that_a_key_needs(
    document: dict[str, Any], native: list[Operation[Any]]
) -> None:
    scopes = {one.name: one.scope for one in native if one.role is not None}
    documented = {op["operationId"]: op.get("x-queues") for _, _, op in operations(document)}

    assert {name: scope for name, scope in documented.items() if scope is not None} == scopes


def test_any_json_value_may_be_a_body(document: dict[str, Any]) -> None:
    draft = document["components"]["schemas"]["Draft"]

    assert set(draft["properties"]["body"]) == {"description"}
    assert draft["required"] == ["body"]


@pytest.fixture
def _gold(served: LiveServer) -> Iterator[None]:
    """A table that the pipeline has computed."""
    folder = Path(served.broker.settings.insights_folder)
    write_day(folder, "slo", "2031-01-01", [{"queue": "mail", "bad": 1}])
    write_tuning(folder, "2031-01-01")
    yield
    shutil.rmtree(folder)


@pytest.mark.usefixtures("_fleet", "_gold")
def test_every_example_is_answered_as_the_document_says(
    served: LiveServer, api: Api, document: dict[str, Any]
) -> None:
    commands = commands_of(api.call("GET", "/docs").text)
    assert set(commands) == {op["operationId"] for _, _, op in operations(document)}

    for _, _, operation in operations(document):
        name = operation["operationId"]
        answer = read(commands[name], **prepare(api, name)).run()

        assert answer.is_success, f"{name}: {answer.text}"
        assert not answer.text.startswith('{"results":[{"error"'), f"{name}: {answer.text}"
        check(document, operation, answer.status_code, answer)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/queues/nowhere", 404),
        ("GET", "/v1/queues?limit=0", 400),
        ("GET", "/v1/messages/nothing", 404),
        ("POST", "/v1/leases/nothing/complete", 409),
        ("POST", "/v1/queues/nowhere/claims", 404),
    ],
)
def test_refusals_are_as_the_document_says(
    api: Api, document: dict[str, Any], method: str, path: str, status: int
) -> None:
    pattern = re.sub(r"nowhere", "{queue}", path.partition("?")[0])
    pattern = re.sub(r"(messages)/nothing", r"\1/{id}", pattern)
    pattern = re.sub(r"(leases)/nothing", r"\1/{receipt}", pattern)

    answer = api.call(method, path)

    assert answer.status_code == status
    check(document, document["paths"][pattern][method.lower()], status, answer)


def check(document: dict[str, Any], operation: dict[str, Any], status: int, answer: Any) -> None:
    """Check that the document allows the response."""
    response = operation["responses"][str(status)]
    contents = response.get("content", {"": None})
    [(media, content)] = contents.items()
    if content is None:
        assert answer.content == b""
        return
    assert answer.headers["content-type"] == media
    if media == "application/json":
        schema = {"components": document["components"], **content["schema"]}
        OAS31Validator(schema).validate(answer.json())
        if operation["operationId"] != "getOpenApi":
            unknown_fields(document, content["schema"], answer.json())


def unknown_fields(document: dict[str, Any], schema: dict[str, Any], value: Any) -> None:
    """Check that the response has only documented fields."""
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if isinstance(value, dict) and "properties" in schema:
        assert value.keys() <= schema["properties"].keys()
        for name, part in value.items():
            unknown_fields(document, schema["properties"][name], part)
    if isinstance(value, list) and "items" in schema:
        for part in value:
            unknown_fields(document, schema["items"], part)


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def fields_of(schema: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return list(schema.get("properties", {}).items())


def written_operations(text: str) -> dict[tuple[str, str], set[str]]:
    """From tables: `POST /a/b` and its siblings (", `/c`"), with the names in their queries."""
    found = {}
    for cell in _ROW.findall(text):
        method, path, query = _FIRST.match(cell).groups()  # type: ignore[union-attr]
        names = set(re.findall(r"[?&](\w+)=", query or ""))
        found[method, path] = names
        for sibling in _NEXT.findall(cell):
            found[method, path.rpartition("/")[0] + sibling] = names
    return found


def table_of_errors(text: str) -> str:
    return text.partition("## Errors")[2].partition("\n## ")[0].partition("|---|---|")[2]
