"""The JSON form of a route table: one object as in gateleen, pattern → rule.

    {"/stripe/(.*)": {"url": "https://api.example.com/v1/$1", "methods": ["POST"], "timeout": 30}}

A table is accepted as a whole or not at all.  gateleen's properties about reading (GETs are not
queued) or about its own logs are ignored.  Properties that would change where a request goes or
what it carries, and that are not supported here, are refused rather than silently dropped.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

from penstock.domain.delivery.addresses import AddressFilter
from penstock.domain.delivery.route import (
    DEFAULT_TIMEOUT_MS,
    DeliveryRoute,
    HeaderMode,
    HeaderRule,
    RouteTable,
    check_endpoint,
    check_route,
)
from penstock.domain.delivery.signature import key_of
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, HOUR, NUL, SECOND

_TIMEOUT_S = DEFAULT_TIMEOUT_MS // SECOND
MAX_ROUTES = 10_000
MAX_PATTERN_CHARS = 1_000
METHODS = frozenset({"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH"})

_IGNORED = {
    "doc": str,
    "logExpiry": int,
    "keepAlive": bool,
    "maxWaitQueueSize": int,
    "expandOnBackend": bool,
    "storageExpand": bool,
    "deltaOnBackend": bool,
}
_UNSUPPORTED = {
    "storage": "resource storage is not supported",
    "profile": "user profiles are not supported",
    "proxyOptions": "requests are sent without a proxy",
    "oAuthId": "fetching tokens is not supported",
    "headersFilter": "routing by headers is not supported",
}
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_KNOWN = {
    *("url", "scheme", "host", "port", "path", "methods", "headers", "staticHeaders", "basicAuth"),
    *("timeout", "connectionPoolSize", "concurrency", "retryIntervals", "translateStatus"),
    *("signingSecret", "signingSecrets", "metricName", "description"),
}


def parse_rules(text: str) -> RouteTable:
    """Return the table, or raise InvalidRequest with the rule and the reason."""
    try:
        rules = json.loads(text, object_pairs_hook=_reject_duplicates)
        json.dumps(rules, ensure_ascii=False).encode()  # an escape may be a lone surrogate
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"rules are not valid JSON: {error}") from None
    if not isinstance(rules, dict):
        raise InvalidRequest("rules must be one JSON object: pattern → rule")
    if len(rules) > MAX_ROUTES:
        raise InvalidRequest(f"at most {MAX_ROUTES} rules, not {len(rules)}")
    routes = [_parse_rule(pattern, rule) for pattern, rule in rules.items()]
    _check_metric_names(routes)
    return RouteTable(routes)


def check_endpoints(table: RouteTable, address_filter: AddressFilter) -> None:
    """Raise InvalidRequest for the first rule whose deliveries could never arrive."""
    for route in table.routes:
        try:
            check_endpoint(route, address_filter)
        except InvalidRequest as error:
            raise InvalidRequest(f"rule {route.pattern[:200]!r}: {error}") from None


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        duplicate = next(name for name in names if names.count(name) > 1)
        raise InvalidRequest(f"{duplicate[:200]!r} occurs twice")
    return found


def _parse_rule(pattern: str, rule: Any) -> DeliveryRoute:
    try:
        return _route(pattern, rule)
    except InvalidRequest as error:
        raise InvalidRequest(f"rule {pattern[:200]!r}: {error}") from None


def _route(pattern: str, rule: Any) -> DeliveryRoute:
    if not pattern.strip() or len(pattern) > MAX_PATTERN_CHARS or NUL in pattern:
        raise InvalidRequest(f"a pattern has 1 to {MAX_PATTERN_CHARS} characters, none of them NUL")
    if not isinstance(rule, dict):
        raise InvalidRequest("a rule must be an object")
    _refuse_others(rule)
    route = DeliveryRoute(
        pattern=pattern,
        url=_url(rule),
        methods=_methods(rule),
        headers=_headers(rule),
        timeout_ms=_int(rule, "timeout", _TIMEOUT_S, 1, HOUR // SECOND) * SECOND,
        concurrency=_concurrency(rule),
        retry_intervals_ms=_intervals(rule),
        signing_secrets=_secrets(rule),
        statuses=_statuses(rule),
        metric_name=_text(rule, "metricName"),
        description=_text(rule, "description"),
    )
    return check_route(route)


def _refuse_others(rule: Mapping[str, Any]) -> None:
    for name, value in rule.items():
        if name in _UNSUPPORTED:
            if value not in (None, [], "", {}):
                raise InvalidRequest(f"{name}: {_UNSUPPORTED[name]}")
        elif name in _IGNORED:
            if not isinstance(value, _IGNORED[name]):
                raise InvalidRequest(f"{name} has the wrong type")
        elif name not in _KNOWN:
            raise InvalidRequest(f"{name[:100]!r} is not a known property")


def _url(rule: Mapping[str, Any]) -> str:
    url, path, host = (_text(rule, name) for name in ("url", "path", "host"))
    if url is not None:
        if path is not None or host is not None:
            raise InvalidRequest("either url, or host and path, not both")
        return url
    if host is None:
        if path is None:
            raise InvalidRequest("url is missing")
        raise InvalidRequest("path alone would be on gateleen's own server: give the whole url")
    scheme = _text(rule, "scheme") or "http"
    port = rule.get("port")
    where = f":{_int(rule, 'port', 0, 1, 65_535)}" if port is not None else ""
    path = path or "/"
    return f"{scheme}://{host}{where}{path if path.startswith('/') else '/' + path}"


def _methods(rule: Mapping[str, Any]) -> frozenset[str]:
    names = frozenset(name.upper() for name in _texts(rule, "methods"))
    unknown = sorted(names - METHODS)
    if unknown:
        raise InvalidRequest(f"methods: {unknown[0][:40]!r} is not a method that can be queued")
    return names


def _concurrency(rule: Mapping[str, Any]) -> int | None:
    """From gateleen's limit of connections, each of which carries one request at a time."""
    if "concurrency" in rule:
        return _int(rule, "concurrency", 0, 1, 100_000)
    if "connectionPoolSize" in rule:
        return _int(rule, "connectionPoolSize", 0, 1, 100_000)
    return None


def _intervals(rule: Mapping[str, Any]) -> tuple[int, ...]:
    """In seconds, as in vertx-redisques."""
    found = rule.get("retryIntervals", [])
    if not isinstance(found, list) or not all(map(_is_int, found)):
        raise InvalidRequest("retryIntervals must be a list of seconds")
    if len(found) > 100 or not all(1 <= seconds <= DAY // SECOND for seconds in found):
        raise InvalidRequest("retryIntervals takes at most 100 values, each from 1 second to a day")
    return tuple(seconds * SECOND for seconds in found)


def _secrets(rule: Mapping[str, Any]) -> tuple[str, ...]:
    one = _text(rule, "signingSecret")
    several = _texts(rule, "signingSecrets")
    if one is not None and several:
        raise InvalidRequest("either signingSecret or signingSecrets, not both")
    secrets = several if one is None else (one,)
    if len(secrets) > 10 or not all(secrets):
        raise InvalidRequest("a rule has at most 10 signing secrets, none of them empty")
    for secret in secrets:
        key_of(secret)
    return secrets


def _statuses(rule: Mapping[str, Any]) -> tuple[tuple[str, int], ...]:
    found = rule.get("translateStatus") or {}
    if not isinstance(found, dict):
        raise InvalidRequest("translateStatus must be an object: pattern → status")
    for pattern, status in found.items():
        if not _is_int(status) or not 100 <= status <= 599:
            raise InvalidRequest(
                f"translateStatus: {pattern[:40]!r} needs a status from 100 to 599"
            )
    return tuple(found.items())


def _headers(rule: Mapping[str, Any]) -> tuple[HeaderRule, ...]:
    if "staticHeaders" in rule and "headers" in rule:
        raise InvalidRequest("either staticHeaders or headers, not both")
    made = [_authorization(rule["basicAuth"])] if rule.get("basicAuth") is not None else []
    given = rule.get("headers", rule.get("staticHeaders", {}))
    if isinstance(given, dict):
        made += [_header(name, value, HeaderMode.SET) for name, value in given.items()]
    elif isinstance(given, list) and "headers" in rule:
        made += map(_header_function, given)
    else:
        raise InvalidRequest("headers must be an object, or a list of {header, value, mode}")
    return tuple(made)


def _header_function(given: Any) -> HeaderRule:
    if not isinstance(given, dict) or not given.keys() <= {"header", "value", "mode"}:
        raise InvalidRequest("each of headers must be {header, value, mode}")
    if not {"header", "value"} <= given.keys() or not isinstance(given["header"], str):
        raise InvalidRequest("each of headers needs a header and a value")
    mode = given.get("mode")
    if mode not in (None, HeaderMode.COMPLETE, HeaderMode.OVERRIDE):
        raise InvalidRequest(f"mode must be complete or override, not {mode!r}")
    return _header(given["header"], given["value"], HeaderMode(mode or HeaderMode.SET))


def _header(name: str, value: Any, mode: HeaderMode) -> HeaderRule:
    if not _TOKEN.fullmatch(name):
        raise InvalidRequest(f"{name[:100]!r} is not a header name")
    if value is not None and (not isinstance(value, str) or re.search(r"[\r\n\0]", value)):
        raise InvalidRequest(f"the value of header {name} must be text on one line")
    return HeaderRule(name, value, mode)


def _authorization(given: Any) -> HeaderRule:
    if not isinstance(given, dict) or given.keys() != {"username", "password"}:
        raise InvalidRequest("basicAuth needs a username and a password")
    user, password = given["username"], given["password"]
    if not isinstance(user, str) or not isinstance(password, str) or ":" in user:
        raise InvalidRequest("basicAuth: both must be text, the username without a colon")
    token = base64.b64encode(f"{user}:{password}".encode()).decode()
    return HeaderRule("Authorization", f"Basic {token}")


def _check_metric_names(routes: list[DeliveryRoute]) -> None:
    seen: set[str] = set()
    for route in routes:
        if route.metric_name in seen:
            raise InvalidRequest(f"metricName {route.metric_name!r} is used twice")
        if route.metric_name is not None:
            seen.add(route.metric_name)


def _text(rule: Mapping[str, Any], name: str) -> str | None:
    value = rule.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidRequest(f"{name} must be text")
    if name == "metricName" and value == "":
        raise InvalidRequest("metricName must not be empty")
    return value


def _texts(rule: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = rule.get(name) or []
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise InvalidRequest(f"{name} must be a list of texts")
    return tuple(value)


def _int(rule: Mapping[str, Any], name: str, default: int, low: int, high: int) -> int:
    value = rule.get(name, default)
    if not _is_int(value) or not low <= value <= high:
        raise InvalidRequest(f"{name} must be a number from {low} to {high}, not {value!r}")
    return int(value)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
