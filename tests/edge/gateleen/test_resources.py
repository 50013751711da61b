"""The routing rules, the breaker's configuration, and the log of their changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.edge.api import Api, assert_refused, ok
from tests.edge.conftest import MakeServer
from tests.edge.gateleen.conftest import BREAKER, LOGGING, RULES, UNREACHABLE, PutRules, of, push

# As in gateleen's document.
EXAMPLE: dict[str, Any] = {
    "circuitCheckEnabled": True,
    "statisticsUpdateEnabled": True,
    "errorThresholdPercentage": 99,
    "entriesMaxAgeMS": 86400000,
    "minQueueSampleCount": 100,
    "maxQueueSampleCount": 5000,
    "openToHalfOpen": {"enabled": True, "interval": 120000},
    "unlockQueues": {"enabled": True, "interval": 10000},
    "unlockSampleQueues": {"enabled": True, "interval": 120000},
}
DEFAULTS: dict[str, Any] = {
    "circuitCheckEnabled": False,
    "statisticsUpdateEnabled": False,
    "errorThresholdPercentage": 90,
    "entriesMaxAgeMS": 86400000,
    "minQueueSampleCount": 100,
    "maxQueueSampleCount": 5000,
    "openToHalfOpen": {"enabled": False, "interval": 120000},
    "unlockQueues": {"enabled": False, "interval": 10000},
    "unlockSampleQueues": {"enabled": False, "interval": 120000},
}
TASKS = ("openToHalfOpen", "unlockQueues", "unlockSampleQueues")
TOO_MUCH = 2**31

pytestmark = pytest.mark.usefixtures("put_rules")


# --- routing rules ---


def test_rules_are_kept_as_they_were_written(api: Api) -> None:
    text = b'{ "/b/(.*)": {"url": "http://b/$1"},\n  "/a": {"url": "http://a"} }'
    assert of(api.call("GET", RULES)) == (200, {})

    answer = api.call("PUT", RULES, raw=text, headers={"Content-Type": "text/plain"})

    assert (answer.status_code, answer.content) == (200, b"")
    assert api.call("GET", RULES).content == text
    assert [route["pattern"] for route in api.get("/v1/routes")["routes"]] == ["/b/(.*)", "/a"]


def test_one_mistake_in_one_rule_and_none_is_taken(api: Api, put_rules: PutRules) -> None:
    put_rules({"/a": {"url": UNREACHABLE}})

    broken = {"/new": {"url": UNREACHABLE}, "/b(": {"url": UNREACHABLE}}
    text = assert_refused(api.call("PUT", RULES, broken), 400, "invalid_request")

    assert "/b(" in text
    assert list(api.get(RULES)) == ["/a"]
    assert_refused(push(api, "/new", "p"), 404, "route_not_found")


@pytest.mark.parametrize(
    "url",
    ["http://169.254.169.254/", "http://2852039166/", "http://[fe80::1]/", "http://h:99999/"],
)
def test_a_rule_that_could_never_work_is_refused_by_name(api: Api, url: str) -> None:
    rules = {"/good": {"url": UNREACHABLE}, "/never/(.*)": {"url": url}}

    text = assert_refused(api.call("PUT", RULES, rules), 400, "invalid_request")

    assert "rule '/never/(.*)': url " in text
    assert_refused(api.call("PUT", "/v1/routes", {"rules": rules}), 400, "invalid_request")
    assert of(api.call("GET", RULES)) == (200, {})


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff", b'{"/a\\u0000": {}}', b'{"/a": 1}'])
def test_invalid_routing_rules_are_rejected(api: Api, body: bytes) -> None:
    assert_refused(api.call("PUT", RULES, raw=body), 400, "invalid_request")


def test_a_rule_that_names_half_a_character_is_refused(api: Api) -> None:
    body = b'{"/\\ud800": {"url": "http://a"}}'

    assert_refused(api.call("PUT", RULES, raw=body), 400, "invalid_request")


def test_new_rules_are_live_at_once_and_gone_ones_are_gone(api: Api, put_rules: PutRules) -> None:
    put_rules({"/a": {"url": UNREACHABLE}})
    assert push(api, "/a", "p").status_code == 202

    assert api.call("DELETE", RULES).status_code == 200

    assert_refused(push(api, "/a", "p"), 404, "route_not_found")
    assert of(api.call("GET", RULES)) == (200, {})


def test_the_first_rule_that_fits_is_taken(api: Api, put_rules: PutRules) -> None:
    put_rules({"/z/(.*)": {"url": f"{UNREACHABLE}/1/$1"}, "/(.*)": {"url": f"{UNREACHABLE}/2/$1"}})

    for uri, target in (("/z/a?b=1", "/1/a?b=1"), ("/a/z", "/2/a/z")):
        assert api.get("/v1/routes/match", uri=uri)["target"] == UNREACHABLE + target


@pytest.mark.parametrize("path", [RULES, BREAKER, LOGGING])
def test_other_methods_are_not_taken(api: Api, path: str) -> None:
    answer = api.call("POST", path, {})

    assert_refused(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "DELETE, GET, HEAD, PUT"


# --- the breaker's configuration ---


def test_without_a_configuration_the_defaults_are_in_force(api: Api) -> None:
    assert of(api.call("GET", BREAKER)) == (200, DEFAULTS)


def test_the_example_of_the_document_is_taken_and_can_be_reset(api: Api) -> None:
    answer = api.call("PUT", BREAKER, EXAMPLE)
    assert (answer.status_code, answer.content) == (200, b"")
    assert of(api.call("GET", BREAKER)) == (200, EXAMPLE)

    assert api.call("DELETE", BREAKER).status_code == 200
    assert of(api.call("GET", BREAKER)) == (200, DEFAULTS)


def _wrong() -> list[tuple[str, dict[str, Any]]]:
    found = [(f"without {key}", {k: v for k, v in EXAMPLE.items() if k != key}) for key in EXAMPLE]
    for task in TASKS:
        for key in ("enabled", "interval"):
            half = {k: v for k, v in EXAMPLE[task].items() if k != key}
            found.append((f"{task} without {key}", {**EXAMPLE, task: half}))
        for value in (0, -1, TOO_MUCH, "1", 1.5, True, None):
            wrong = {"enabled": True, "interval": value}
            found.append((f"{task} every {value!r}", {**EXAMPLE, task: wrong}))
        more = {**EXAMPLE[task], "more": 1}
        found.append((f"{task} with more", {**EXAMPLE, task: more}))
    for key in ("entriesMaxAgeMS", "minQueueSampleCount", "maxQueueSampleCount"):
        found += [(f"{key} {v!r}", {**EXAMPLE, key: v}) for v in (-1, TOO_MUCH, "1", 0.5, None)]
    for value in (-1, 101, "90", 89.5):
        found.append((f"{value!r} percent", {**EXAMPLE, "errorThresholdPercentage": value}))
    for key in ("circuitCheckEnabled", "statisticsUpdateEnabled"):
        found += [(f"{key} {v!r}", {**EXAMPLE, key: v}) for v in (0, "true", None)]
    found.append(("another key", {**EXAMPLE, "single_probe": True}))
    return found


@pytest.mark.parametrize("wrong", [pytest.param(body, id=name) for name, body in _wrong()])
def test_a_configuration_that_is_not_exact_is_refused_and_nothing_changes(
    api: Api, wrong: dict[str, Any]
) -> None:
    assert_refused(api.call("PUT", BREAKER, wrong), 400, "invalid_request")

    assert of(api.call("GET", BREAKER)) == (200, DEFAULTS)


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b"{", b"\xff", b"[" * 10_000])
def test_an_invalid_configuration_is_rejected(api: Api, body: bytes) -> None:
    assert_refused(api.call("PUT", BREAKER, raw=body), 400, "invalid_request")


@pytest.mark.parametrize(
    "edge",
    [
        {"errorThresholdPercentage": 0},
        {"errorThresholdPercentage": 100},
        {"entriesMaxAgeMS": 0, "minQueueSampleCount": 0, "maxQueueSampleCount": 0},
        {"entriesMaxAgeMS": TOO_MUCH - 1},
        {"unlockQueues": {"enabled": False, "interval": 1}},
    ],
)
def test_the_edges_of_the_ranges_are_taken(api: Api, edge: dict[str, Any]) -> None:
    assert api.call("PUT", BREAKER, {**EXAMPLE, **edge}).status_code == 200

    assert api.get(BREAKER) == {**EXAMPLE, **edge}


def test_settings_that_gateleen_does_not_have_survive_a_put_in_its_format(api: Api) -> None:
    ok(api.call("PATCH", "/v1/breaker", {"single_probe": True, "unlock_growth": 2}))

    assert api.call("PUT", BREAKER, EXAMPLE).status_code == 200

    settings = api.get("/v1/breaker")
    assert (settings["single_probe"], settings["unlock_growth"]) == (True, 2)
    assert settings["open_to_half_open"] == {"enabled": True, "interval_ms": 120_000}
    assert settings["circuit_check_enabled"]


# --- logging ---

ALL_PUTS = {"payload": {"filters": [{"url": "/admin/v1/circuitbreaker", "method": "PUT"}]}}


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "penstock.changes"]


def test_a_change_is_logged_without_its_payload(api: Api, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "penstock.changes")
    api.call("PUT", LOGGING, ALL_PUTS)
    api.call("PUT", BREAKER, EXAMPLE)
    api.call("PUT", BREAKER, {})  # rejected: nothing has changed
    api.call("GET", BREAKER)

    assert logged(caplog) == [f"PUT {LOGGING} by anyone", f"PUT {BREAKER} by anyone"]


@pytest.fixture
def logging_api(make_server: MakeServer, caplog: pytest.LogCaptureFixture) -> Api:
    caplog.set_level("INFO", "penstock.changes")
    return Api(make_server(push={"log_changes": True}).url)


def test_payloads_are_logged_of_the_resources_and_methods_that_are_named(
    logging_api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    document = {"headers": ["X-Rp-Usr"], **ALL_PUTS}
    logging_api.call("PUT", LOGGING, document)
    assert logging_api.get(LOGGING) == document

    logging_api.call("PUT", BREAKER, EXAMPLE, headers={"x-rp-usr": "ada"})
    logging_api.call("PUT", RULES, {"/secret": {"url": UNREACHABLE}})

    [line] = [line for line in logged(caplog) if "payload" in line]
    assert line.startswith(f"PUT {BREAKER} {{'x-rp-usr': 'ada'}} payload: {{")
    assert json.loads(line.partition("payload: ")[2]) == EXAMPLE


def test_payloads_are_not_logged_unless_the_logging_resource_asks_for_it(
    logging_api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    logging_api.call("PUT", BREAKER, EXAMPLE)
    logging_api.call("PUT", LOGGING, ALL_PUTS)
    logging_api.call("DELETE", LOGGING)
    logging_api.call("PUT", BREAKER, EXAMPLE)

    assert [line for line in logged(caplog) if "payload" in line] == []


def test_the_first_filter_that_fits_decides(
    logging_api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    filters = [
        {"url": "/admin/.*", "x-rp-usr": "robot.*", "reject": "true"},
        {"url": "/admin/v1/circuit.*"},
    ]
    logging_api.call("PUT", LOGGING, {"payload": {"filters": filters}})

    logging_api.call("PUT", BREAKER, EXAMPLE, headers={"x-rp-usr": "robot-7"})
    assert [line for line in logged(caplog) if "payload" in line] == []
    logging_api.call("PUT", BREAKER, EXAMPLE, headers={"x-rp-usr": "ada"})
    assert len([line for line in logged(caplog) if "payload" in line]) == 1


@pytest.mark.parametrize(
    "filters",
    [
        1,
        [1],
        [{}],
        [{"url": 1}],
        [{"url": "("}],
        [{"url": "a", "reject": "maybe"}],
        [{"reject": True}],
    ],
)
def test_filters_that_mean_nothing_are_refused(api: Api, filters: Any) -> None:
    answer = api.call("PUT", LOGGING, {"payload": {"filters": filters}})

    assert_refused(answer, 400, "invalid_request")
    assert of(api.call("GET", LOGGING)) == (200, {})


def test_the_resources_can_be_elsewhere(make_server: MakeServer) -> None:
    paths = {"rules_path": "/x/rules", "breaker_path": "/x/breaker/", "logging_path": "/x/log"}
    api = Api(make_server(push=paths).url)

    for path in ("/x/rules", "/x/breaker", "/x/log"):
        assert api.call("GET", path).status_code == 200
    for path in (RULES, BREAKER, LOGGING):
        assert api.call("GET", path).status_code == 404
    api.close()
