"""Routes: where a queued request goes.

A route table is an ordered list; a request belongs to the first route whose pattern matches its
whole URI, query included.  `$1`, `$2` … in a route's URL stand for the groups of its pattern.
`domain/delivery/route_rules.py` parses the JSON form of a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from urllib.parse import unquote_to_bytes

import msgspec

from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.delivery.addresses import AddressDenied, AddressFilter, literal
from penstock.domain.delivery.pattern import Groups, InvalidPattern, compile_pattern
from penstock.domain.errors import InvalidRequest, InvalidUri, RouteNotFound
from penstock.domain.limits import SECOND

_SEPARATOR = re.compile(rb"[/\\]")
_DOTS = frozenset({b".", b".."})
_MAX_DECODINGS = 4
DEFAULT_TIMEOUT_MS = 120 * SECOND  # as long as gateleen waits for queued requests
Headers = list[tuple[str, str]]
_MARK = re.compile(r"\$(\d{1,2})")
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)"
    r"(?::(?P<port>\d{1,5}|\$\d{1,2}))?(?P<path>/.*)?"
)
_REFERENCE = re.compile(r"<([^<>]+)>")


def check_uri(uri: str) -> str:
    r"""Return a path with its query, or raise InvalidUri if it cannot be sent safely.

    A route's pattern takes a dot segment (`..`) literally, but a backend resolves it:
    `/orders/../admin` matches a route for `/orders/(.*)`.  Such URIs are refused before any pattern
    is matched.  Segments are decoded as backends decode them: `%2e` is a dot, `%2f`, `\` and `%5c`
    separate segments, parameters after `;` do not belong to a segment, and double encoding is
    decoded twice.
    """
    if "#" in uri:
        raise InvalidUri(
            f"uri {uri[:200]!r} has a fragment, which is never sent: write a literal # as %23"
        )
    if has_dot_segment(uri):
        raise InvalidUri(
            f"uri {uri[:200]!r} has a dot segment: send the path that it stands for instead"
        )
    return uri


def has_dot_segment(uri: str) -> bool:
    """Whether the path has one; dots in the query are not segments."""
    path = uri.partition("?")[0].encode("utf-8", "surrogatepass")
    for _ in range(_MAX_DECODINGS):
        if any(part.partition(b";")[0] in _DOTS for part in _SEPARATOR.split(path)):
            return True
        decoded = unquote_to_bytes(path)
        if decoded == path:
            return False
        path = decoded
    return True  # encoded more times than any client would by accident


class HeaderMode(StrEnum):
    SET = "set"
    COMPLETE = "complete"  # only if it is absent
    OVERRIDE = "override"  # only if it is present


class HeaderRule(msgspec.Struct, frozen=True):
    """A change to one header before a request goes out."""

    name: str
    value: str | None  # None: the header is removed; `<other>`: the value of another header
    mode: HeaderMode = HeaderMode.SET


class DeliveryRoute(msgspec.Struct, frozen=True, kw_only=True):
    pattern: str
    url: str
    methods: frozenset[str] = frozenset()  # empty: all
    headers: tuple[HeaderRule, ...] = ()
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    concurrency: int | None = None  # requests under way at the same time
    retry_intervals_ms: tuple[int, ...] = ()  # after the 1st, 2nd … failure; the last one repeats
    signing_secrets: tuple[str, ...] = ()
    statuses: tuple[tuple[str, int], ...] = ()  # how statuses of the backend are translated
    metric_name: str | None = None
    description: str | None = None

    @property
    def hash(self) -> str:
        return circuit_hash(self.pattern)

    @property
    def endpoint(self) -> str:
        """Scheme, host and port of its URL."""
        return "/".join(self.url.split("/")[:3])

    def takes(self, method: str | None) -> bool:
        return method is None or not self.methods or method.upper() in self.methods

    def target(self, uri: str) -> str:
        """The URL for a request with this URI; raises InvalidRequest."""
        found = compile_pattern(self.pattern).fullmatch(uri)
        if found is None:
            raise RouteNotFound(uri)
        url = _URL.fullmatch(self.url)
        assert url is not None, "it was checked when the route was made"
        port = url["port"]
        if port is not None:
            port = _fill(port, found)
            # Otherwise the sender of a request could name any host, as in `80@elsewhere`.
            if not _is_port(port):
                raise InvalidRequest(f"{port[:40]!r} of {uri[:200]!r} is not a port")
        path = _fill(url["path"] or "/", found)
        if has_dot_segment(path):
            raise InvalidUri(f"uri {uri[:200]!r} makes a dot segment in {self.url[:200]!r}")
        return f"{url['scheme']}://{url['host']}{':' + port if port else ''}{_clean(path)}"

    def headers_for(self, headers: Iterable[tuple[str, str]]) -> Headers:
        """The headers of a request as they go out."""
        wanted = list(headers)
        for rule in self.headers:
            wanted = _with_header(wanted, rule)
        return wanted

    def status_of(self, status: int) -> int:
        """The backend's status, translated by the route's rules."""
        for pattern, meant in self.statuses:
            if compile_pattern(pattern).fullmatch(str(status)) is not None:
                return meant
        return status


class RouteTable:
    """Routes in order.  Built once, matched often."""

    def __init__(self, routes: Sequence[DeliveryRoute] = ()) -> None:
        self.routes = tuple(routes)
        # Compiled now, so that the first request does not have to wait for it.
        self._patterns = [compile_pattern(route.pattern) for route in self.routes]
        self._by_hash = {route.hash: route for route in reversed(self.routes)}

    @property
    def patterns(self) -> dict[str, str]:
        """Patterns by the hashes of their circuits."""
        return {key: route.pattern for key, route in self._by_hash.items()}

    def match(self, uri: str, *, method: str | None = None) -> DeliveryRoute | None:
        """The first route that matches.  Circuits match by URI alone, without `method`."""
        for route, pattern in zip(self.routes, self._patterns, strict=True):
            if route.takes(method) and pattern.fullmatch(uri) is not None:
                return route
        return None

    def of_hash(self, circuit_hash: str) -> DeliveryRoute | None:
        return self._by_hash.get(circuit_hash)


def check_route(route: DeliveryRoute) -> DeliveryRoute:
    """Return it, or raise InvalidRequest with the reason."""
    try:
        pattern = compile_pattern(route.pattern)
    except InvalidPattern as error:
        raise InvalidRequest(f"the pattern is not a regular expression: {error}") from None
    url = _URL.fullmatch(route.url)
    if url is None:
        raise InvalidRequest(
            "url must be http:// or https://, a host without groups, maybe a port, and a path"
            f", not {route.url[:200]!r}"
        )
    for mark in _MARK.findall(route.url):
        if not _group(mark, pattern.groups)[0]:
            raise InvalidRequest(f"url has ${mark}, but the pattern has {pattern.groups} groups")
    for text, _ in route.statuses:
        try:
            compile_pattern(text)
        except InvalidPattern as error:
            raise InvalidRequest(f"translateStatus: {text!r}: {error}") from None
    return route


def check_endpoint(route: DeliveryRoute, address_filter: AddressFilter) -> None:
    """Raise InvalidRequest if deliveries could never reach a new route's URL.

    Stored rules are not checked again: they load, and their deliveries fail.
    """
    url = _URL.fullmatch(route.url)
    assert url is not None, "it was checked when the route was made"
    port = url["port"]
    if port is not None and not port.startswith("$") and not _is_port(port):
        raise InvalidRequest(f"url has the port {port}; ports are 1 to 65535")
    if has_dot_segment(url["path"] or "/"):
        raise InvalidRequest("url has a dot segment: write the path that it stands for")
    try:
        address = literal(url["host"])
        if address is not None:
            address_filter.check(str(address))
            # HTTP clients disagree about other notations, and ours accepts only some of them.
            if address.version == 4 and url["host"] != str(address):
                raise InvalidRequest(f"url has the host {url['host']}: write it as {address}")
    except (ValueError, AddressDenied) as error:
        raise InvalidRequest(f"url cannot be reached: {error}") from None


def _is_port(text: str) -> bool:
    return re.fullmatch("[0-9]{1,5}", text) is not None and 0 < int(text) < 65536


def _fill(text: str, found: Groups) -> str:
    def value(mark: re.Match[str]) -> str:
        number, rest = _group(mark[1], len(found) - 1)
        return found[number] + rest

    return _MARK.sub(value, text)


def _group(digits: str, groups: int) -> tuple[int, str]:
    """As Java reads it: `$12` is group 1 followed by a 2 if there are fewer than twelve groups."""
    if int(digits) <= groups:
        return int(digits), ""
    first = int(digits[0])
    return (first, digits[1:]) if len(digits) > 1 and 0 < first <= groups else (0, "")


def _clean(path: str) -> str:
    """Escape characters that a received URI cannot have but a handwritten one may."""
    return "".join(c if c > " " and c != "\x7f" else f"%{ord(c):02X}" for c in path)


def _with_header(headers: Headers, rule: HeaderRule) -> Headers:
    name = rule.name.lower()
    is_there = any(other.lower() == name for other, _ in headers)
    if rule.value is not None:
        if rule.mode is HeaderMode.COMPLETE and is_there:
            return headers
        if rule.mode is HeaderMode.OVERRIDE and not is_there:
            return headers
    others = [(other, value) for other, value in headers if other.lower() != name]
    if rule.value is None:
        return others
    return [*others, (rule.name, _resolve(rule.value, headers))]


def _resolve(value: str, headers: Headers) -> str:
    known = {name.lower(): text for name, text in reversed(headers)}
    return _REFERENCE.sub(lambda found: known.get(found[1].lower(), ""), value)
