"""Routing: which handler serves a path, and which access it requires."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import unquote

import msgspec

from penstock.api.operation import Operation
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.errors import MethodNotAllowed, NotFound, PenstockError
from penstock.domain.limits import NUL
from penstock.edge.server.request import Handler, Request, Response

_ANYTHING = re.compile(".+", re.DOTALL)
_CACHED = frozenset({"queue"})  # path parameters with few distinct values, unlike ids
_SHORT = 150  # characters; bounds the memory of the cache
_MAX_REMEMBERED = 20_000

# The order in which a commit does the work of hot operations.
SENDS, ACTS, CLAIMS = 1, 2, 3

Refuse = Callable[[Request, PenstockError], Response]


class HttpRoute(msgspec.Struct, frozen=True, kw_only=True):
    """A method and a path, the access they require, and their handler."""

    method: str
    # "/v1/queues/{queue}/messages"; "{name:pattern}" to match only some segments; "{name...}" at
    # the end for the rest of the path, undecoded.
    path: str
    handler: Handler
    role: Role | None = None  # None: no key is needed
    scope: Scope = Scope.QUEUE  # which queues a key with this role must cover
    queue: str | None = None  # the queue of the request, if the path does not name one
    name: str = ""  # the operationId: "sendMessage"
    takes_any_media: bool = False  # clients of other protocols also post forms
    takes_other_sites: bool = False  # AweQ: the handler checks requests from other sites itself
    refuse: Refuse | None = None  # renders errors; None: as the native API does
    # If the handler returns None, its work is in the store, which does the work of a commit in this
    # order.  0: this is not known, and requests that are pipelined behind it wait.
    order: int = 0
    operation: Operation[Any] | None = None  # of the contract; None: not in the OpenAPI document

    def __post_init__(self) -> None:
        """Reject an operation without a scope: the key's queues would not be checked."""
        has_queue = self.queue is not None or "{queue}" in self.path
        if self.role is not None and self.scope is Scope.QUEUE and not has_queue:
            raise ValueError(f"{self.method} {self.path} does not name a queue: give it a scope")


class _Node:
    __slots__ = ("children", "name", "pattern", "rest", "routes", "wild")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.wild: _Node | None = None
        self.rest: _Node | None = None
        self.name = ""
        self.pattern = _ANYTHING
        self.routes: dict[str, HttpRoute] = {}


class Router:
    def __init__(self, routes: Iterable[HttpRoute]) -> None:
        self.routes = list(routes)
        self._root = _Node()
        self._found: dict[tuple[str, str], tuple[HttpRoute, dict[str, str]]] = {}
        for route in self.routes:
            self._add(route)

    def find(self, method: str, path: str) -> tuple[HttpRoute, dict[str, str]]:
        """Find the route and its parameters; raises NotFound or MethodNotAllowed."""
        found = self._found.get((method, path))
        if found is None:
            found = self._look_up(method, path)
            if len(path) <= _SHORT and found[1].keys() <= _CACHED:
                if len(self._found) >= _MAX_REMEMBERED:
                    self._found.clear()
                self._found[method, path] = found
        return found

    def _look_up(self, method: str, path: str) -> tuple[HttpRoute, dict[str, str]]:
        params: dict[str, str] = {}
        node: _Node | None = self._root
        parts = path.split("/")
        for place, part in enumerate(parts[1:], start=1):
            assert node is not None
            if node.rest is not None and part not in node.children:
                node = node.rest
                params[node.name] = "/".join(parts[place:])
                break
            child = node.children.get(part)
            if child is None and node.wild is not None and node.wild.pattern.fullmatch(part):
                child = node.wild
                params[child.name] = _unquote(part) if "%" in part else part
            if child is None:
                raise NotFound(f"nothing is served at {path[:200]!r}")
            node = child
        assert node is not None
        route = node.routes.get(method)
        if route is None:
            if not node.routes:
                raise NotFound(f"nothing is served at {path[:200]!r}")
            allowed = {*node.routes, "HEAD"} if "GET" in node.routes else node.routes.keys()
            names = tuple(sorted(allowed))
            raise MethodNotAllowed(f"{path[:200]!r} allows only {', '.join(names)}", names)
        return route, params

    def _add(self, route: HttpRoute) -> None:
        node = self._root
        for part in route.path.split("/")[1:]:
            if part.endswith("...}"):
                if node.rest is None:
                    node.rest = _Node()
                    node.rest.name = part[1:-4]
                node = node.rest
            elif part.startswith("{"):
                if node.wild is None:
                    node.wild = _Node()
                    node.wild.name, _, pattern = part[1:-1].partition(":")
                    node.wild.pattern = re.compile(pattern) if pattern else _ANYTHING
                node = node.wild
            else:
                node = node.children.setdefault(part, _Node())
        node.routes[route.method] = route


def _unquote(part: str) -> str:
    text = unquote(part)
    if NUL in text:  # no name contains a NUL, and PostgreSQL rejects it
        raise NotFound("a name must not contain a NUL")
    return text
