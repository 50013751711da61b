"""Nodes of several processes, on each store: one that tests share, and their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.edge.api import Api
from tests.edge.node.node import Node

MakeNode = Callable[..., Node]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def node(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Node]:
    """For all tests of a module; they do not kill it."""
    store = None
    if request.param == "postgres":
        cluster = request.getfixturevalue("postgres_cluster")
        template = request.getfixturevalue("migrated_template")
        cluster.start()
        store = cluster.new_database(template=template)
    with Node(tmp_path_factory.mktemp("node") / "data", store=store) as started:
        yield started


@pytest.fixture
def clients(node: Node) -> Iterator[list[Api]]:
    """Clients with a connection each: so many that each front has some of them."""
    yield from _clients(node)


@pytest.fixture(params=["sqlite", "postgres"])
def make_node(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeNode]:
    """Nodes with their own settings: make_node(server_max_connections=3)."""
    store = None
    if request.param == "postgres":
        store = request.getfixturevalue("migrated_url")
    with ExitStack() as stack:

        def make(**settings: object) -> Node:
            return stack.enter_context(Node(tmp_path / "data", settings, store=store))

        yield make


def _clients(node: Node) -> Iterator[list[Api]]:
    made = [Api(node.url) for _ in range(12)]
    yield made
    for one in made:
        one.close()
