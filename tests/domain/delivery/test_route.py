"""Which route a request takes, and its target."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.domain.circuit.circuit import circuit_hash
from penstock.domain.delivery.addresses import AddressFilter
from penstock.domain.delivery.pattern import compile_pattern
from penstock.domain.delivery.route import (
    DeliveryRoute,
    HeaderMode,
    HeaderRule,
    RouteTable,
    check_endpoint,
    check_route,
)
from penstock.domain.errors import InvalidRequest, InvalidUri, RouteNotFound


def a_route(pattern: str = "/a/(.*)", url: str = "http://backend/x", **more: Any) -> DeliveryRoute:
    return check_route(DeliveryRoute(pattern=pattern, url=url, **more))


def test_the_first_that_matches_the_whole_uri_is_taken() -> None:
    table = RouteTable([a_route("/a/b", "http://one/"), a_route(), a_route("/a/.*")])

    assert table.match("/a/b") == table.routes[0]
    assert table.match("/a/b?x=1") == table.routes[1], "the query belongs to it"
    assert table.match("/a/b/c") == table.routes[1]
    assert table.match("/b/a/b") is None, "not only a part of it"


def test_a_route_may_be_for_some_methods_while_circuits_go_by_the_uri_alone() -> None:
    table = RouteTable([a_route(methods=frozenset({"PUT"})), a_route("/a/x(.*)")])

    assert table.match("/a/x", method="put") == table.routes[0]
    assert table.match("/a/x", method="POST") == table.routes[1]
    assert table.match("/a/x") == table.routes[0]


def test_a_circuit_is_found_by_its_hash() -> None:
    table = RouteTable([a_route("/a"), a_route("/b"), a_route(" /a ")])

    assert table.of_hash(circuit_hash("/b")) == table.routes[1]
    assert table.of_hash(circuit_hash("/a")) == table.routes[0], "the first of two"
    assert table.of_hash("0" * 32) is None
    assert table.patterns == {circuit_hash("/a"): "/a", circuit_hash("/b"): "/b"}


@pytest.mark.parametrize(
    ("pattern", "url", "uri", "target"),
    [
        ("/a/(.*)", "http://h:81/x/$1", "/a/b/c?d=e&f=1", "http://h:81/x/b/c?d=e&f=1"),
        ("/a/([^/]+)/(.*)", "https://h/$2/$1", "/a/b/c/d", "https://h/c/d/b"),
        ("/a(/x)?", "http://h/y$1", "/a", "http://h/y"),
        ("/a/(.*)", "http://h", "/a/b", "http://h/"),
        ("/a/(.*)", "http://h/$10", "/a/b", "http://h/b0"),
        ("/a/(?<what>.*)", "http://h/$1", "/a/b", "http://h/b"),
        ("/a/([0-9]+)/(.*)", "http://h:$1/$2", "/a/8080/b", "http://h:8080/b"),
        ("/a/(.*)", "http://[::1]:80/$1", "/a/b", "http://[::1]:80/b"),
        ("/a/(.*)", "http://h/$1", "/a/b c\n", "http://h/b%20c%0A"),
    ],
)
def test_groups_of_the_pattern_are_filled_into_the_target(
    pattern: str, url: str, uri: str, target: str
) -> None:
    pattern = pattern.replace("(.*)", "([\\s\\S]*)")

    assert a_route(pattern, url).target(uri) == target


@pytest.mark.parametrize("port", ["80@elsewhere.example", "0", "70000", "", "8a"])
def test_a_sender_cannot_name_another_host_through_the_port(port: str) -> None:
    route = a_route("/a/(.*)/b", "http://h:$1/x")

    with pytest.raises(InvalidRequest, match="not a port"):
        route.target(f"/a/{port}/b")


@pytest.mark.parametrize(
    "url",
    [
        *("", "/only/a/path", "ftp://h/x", "http://", "http://h:x/", "http://h:123456/"),
        *("http://$1/", "http://a$1/", "http://u:p@h/", "http://h:80$1", "http://h?x"),
        *("http://h/$2", "http://h/$0"),
    ],
)
def test_an_invalid_url_or_one_with_a_group_in_its_host_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match="url"):
        a_route(url=url)


def test_an_invalid_regular_expression_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="regular expression"):
        a_route("/a/(.*", "http://h/")


def test_another_routes_uri_has_no_target_here() -> None:
    with pytest.raises(RouteNotFound):
        a_route().target("/b/c")


def test_headers_are_set_completed_overridden_and_taken_away() -> None:
    route = a_route(
        headers=(
            HeaderRule("X-Set", "new"),
            HeaderRule("x-gone", None),
            HeaderRule("X-There", "ignored", HeaderMode.COMPLETE),
            HeaderRule("X-Missing", "added", HeaderMode.COMPLETE),
            HeaderRule("X-Old", "changed", HeaderMode.OVERRIDE),
            HeaderRule("X-Nowhere", "not added", HeaderMode.OVERRIDE),
            HeaderRule("X-Made", "<x-there>/<unknown>!"),
        )
    )
    given = [("x-set", "old"), ("X-Gone", "1"), ("X-There", "there"), ("x-old", "1"), ("A", "b")]

    assert dict(route.headers_for(given)) == {
        "X-Set": "new",
        "X-There": "there",
        "X-Missing": "added",
        "X-Old": "changed",
        "X-Made": "there/!",
        "A": "b",
    }


def test_a_status_of_the_backend_may_mean_another() -> None:
    route = a_route(statuses=(("404", 200), ("5..", 503)))

    assert [route.status_of(status) for status in (200, 404, 500, 599, 409)] == [
        *(200, 200, 503, 503, 409)
    ]


def test_a_group_cannot_put_a_dot_segment_into_the_target() -> None:
    route = a_route("/a\\?to=(.*)", "http://h/x/$1")

    assert route.target("/a?to=b") == "http://h/x/b"
    with pytest.raises(InvalidUri, match="dot segment"):
        route.target("/a?to=../admin")
    with pytest.raises(InvalidUri, match="dot segment"):
        a_route("/a/(.*)/(.*)", "http://h/$1.$2").target("/a/./")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://169.254.169.254/x", r"169\.254\.0\.0/16"),
        ("http://2852039166/", r"169\.254\.0\.0/16"),
        ("http://0xa9.0376.43518/", r"169\.254\.0\.0/16"),
        ("http://[::ffff:169.254.169.254]:80/", r"169\.254\.0\.0/16"),
        ("http://10.1.2.3/", r"10\.0\.0\.0/8"),
        ("http://300.1.1.1/", "not an address"),
        ("http://2130706433/", r"write it as 127\.0\.0\.1"),
        ("http://h:99999/", "99999"),
        ("http://h:0/", "port 0"),
        ("http://h/a/../b", "dot segment"),
    ],
)
def test_a_new_route_that_could_never_be_reached_is_refused(url: str, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        check_endpoint(a_route(url=url), AddressFilter("10.0.0.0/8"))


@pytest.mark.parametrize("url", ["http://127.0.0.1:65535/", "https://shop/a.b", "http://h:$1/"])
def test_a_new_route_elsewhere_is_taken(url: str) -> None:
    check_endpoint(a_route("/a/(.*)", url), AddressFilter("10.0.0.0/8"))


def test_patterns_are_compiled_when_the_table_is_made() -> None:
    table = RouteTable([DeliveryRoute(pattern=f"/{n}/(a+)+b", url="http://h/") for n in range(10)])
    compile_pattern.cache_clear()

    assert table.match("/9/" + "a" * 1_000) is None

    assert compile_pattern.cache_info().misses == 0
