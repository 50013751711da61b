"""A server that requires keys, and clients with keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from penstock.domain.access.api_key import Role
from tests.edge.api import Api
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer

LetIn = Callable[..., Api]


@pytest.fixture(scope="session")
def server_with_keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that requires a key."""
    settings = some_settings(
        tmp_path_factory.mktemp("server_with_keys"), auth={"required": "always"}
    )
    with LiveServer(settings, has_duties=False) as started:
        yield started


@pytest.fixture(scope="session")
def let_in(server_with_keys: LiveServer) -> Iterator[LetIn]:
    """A client with its own key: let_in(Role.READ, queues=("mail*",)); all roles if none."""
    with ExitStack() as stack:

        def make(*roles: Role, queues: tuple[str, ...] = ("*",)) -> Api:
            client = Api(server_with_keys.url, key=new_key(server_with_keys, *roles, queues=queues))
            return stack.enter_context(closing(client))

        yield make


def new_key(server: LiveServer, *roles: Role, queues: tuple[str, ...] = ("*",)) -> str:
    broker = server.broker
    made = broker.keys.create("a test", roles=roles or tuple(Role), queues=queues).result()
    broker.refresh_keys()
    return made.secret
