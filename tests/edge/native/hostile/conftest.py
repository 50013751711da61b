"""The target: a server process with short timeouts, watched while it is attacked."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

import pytest

from tests.edge.api import Api
from tests.edge.process import ServerProcess

RECEIVE_TIMEOUT_MS = 1_000
ANSWERS_WITHIN_S = 30.0
MAX_MEMORY = 300 * 1024 * 1024


@pytest.fixture(scope="session")
def started_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    settings = {
        "server_receive_timeout_ms": RECEIVE_TIMEOUT_MS,
        "server_idle_timeout_ms": RECEIVE_TIMEOUT_MS,
        "server_max_connections": 700,
    }
    with ServerProcess(tmp_path_factory.mktemp("target") / "data", settings) as process:
        yield process


@pytest.fixture
def target(started_target: ServerProcess) -> Iterator[ServerProcess]:
    """After every attack it runs, serves normal clients, has not grown, has logged no traceback."""
    yield started_target

    assert started_target.is_alive, started_target.log_tail()
    began = monotonic()
    api = Api(started_target.url)
    api.finish(api.make_queue())
    api.close()
    assert monotonic() - began < ANSWERS_WITHIN_S
    assert started_target.resident_bytes < MAX_MEMORY
    assert "Traceback" not in started_target.log_tail()


@pytest.fixture
def victim(target: ServerProcess) -> Iterator[str]:
    """A queue with a message in it, which attacks must not change."""
    before = Api(target.url)
    name = before.make_queue("victim")
    before.send(name, "untouched")
    before.close()

    yield name

    after = Api(target.url)  # its own connection: the first may have idled out during the attack
    assert after.counts(name) == {"ready": 1}
    after.close()
