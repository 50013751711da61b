"""URIs that an endpoint could interpret differently from the pattern of a route."""

from __future__ import annotations

import pytest

from penstock.domain.delivery.route import check_uri
from penstock.domain.errors import InvalidUri


@pytest.mark.parametrize(
    "uri",
    [
        "/shop/../admin",
        "/shop/./orders",
        "/..",
        "/shop/%2e%2e/admin",
        "/shop/.%2E/admin",
        "/shop/..%2fadmin",
        "/shop%2F..%2Fadmin",
        "/shop/..\\admin",
        "/shop\\..%5cadmin",
        "/shop/..;jsessionid=1/admin",
        "/shop/%2e%2e%3bx/admin",
        "/shop/%252e%252e/admin",
        "/shop/%25252525252e/admin",
        "/shop/..?x=1",
    ],
)
def test_a_dot_segment_is_refused_however_it_is_written(uri: str) -> None:
    with pytest.raises(InvalidUri, match="dot segment"):
        check_uri(uri)


@pytest.mark.parametrize(
    "uri",
    [
        "/",
        "/shop/orders/17",
        "/shop/...",
        "/shop/..orders/orders../.well-known/a.b",
        "/shop/a%2Fb%20c",
        "/shop/%25",
        "/shop/100%",
        "/shop;a=..",
        "/shop?path=../../etc&x=%2e%2e",
    ],
)
def test_dots_that_are_not_a_segment_of_the_path_pass(uri: str) -> None:
    assert check_uri(uri) == uri


def test_a_fragment_is_refused_because_it_would_be_dropped() -> None:
    with pytest.raises(InvalidUri, match="%23"):
        check_uri("/shop/orders#17")
