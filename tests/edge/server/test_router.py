"""Routing: which paths lead to which handlers."""

from __future__ import annotations

import pytest

from penstock.domain.errors import MethodNotAllowed, NotFound
from penstock.edge.server.request import Request, Respond, Response
from penstock.edge.server.router import HttpRoute, Router


async def _nothing(request: Request, respond: Respond) -> Response:
    return Response(204)


def _router(*paths: str) -> Router:
    return Router([HttpRoute(method="GET", path=path, handler=_nothing) for path in paths])


def test_a_part_of_a_path_may_have_to_fit_a_pattern():
    router = _router("/{account:[0-9]{3}}/{name}", "/v1/queues")

    route, params = router.find("GET", "/123/mail")

    assert route.path == "/{account:[0-9]{3}}/{name}"
    assert params == {"account": "123", "name": "mail"}
    for path in ("/12/mail", "/1234/mail", "/abc/mail", "/123", "/123/", "/v1/other"):
        with pytest.raises(NotFound):
            router.find("GET", path)


def test_a_path_that_was_found_before_is_found_again_only_by_its_own_method():
    router = _router("/queues/{queue}")

    first = router.find("GET", "/queues/a")

    assert router.find("GET", "/queues/a") == first
    assert router.find("GET", "/queues/b")[1] == {"queue": "b"}
    with pytest.raises(MethodNotAllowed):
        router.find("POST", "/queues/a")


def test_the_rest_of_a_path_may_be_anything_and_stays_as_it_came():
    router = _router("/push/{uri...}", "/push")

    for rest in ("", "a", "a/b//c/", "a%2Fb/../%00", "push/x"):
        route, params = router.find("GET", f"/push/{rest}")
        assert (route.path, params) == ("/push/{uri...}", {"uri": rest})
    assert router.find("GET", "/push")[0].path == "/push"
    with pytest.raises(MethodNotAllowed):
        router.find("POST", "/push/a")
    with pytest.raises(NotFound):
        router.find("GET", "/pushed/a")
