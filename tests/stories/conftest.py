"""Each story on every store that it applies to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.stories.environment import StoryEnvironment

EMBEDDED = ("sqlite", "postgres")
EVERYWHERE = (*EMBEDDED, "http")

OpenEnvironment = Callable[[str], StoryEnvironment]


@pytest.fixture
def open_environment(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[OpenEnvironment]:
    """`http`: the application reaches a server, which keeps a SQLite store."""
    environments: list[StoryEnvironment] = []

    def make(backend: str) -> StoryEnvironment:
        if backend == "postgres":
            store = str(request.getfixturevalue("migrated_url"))
        else:
            # The application's own connections write to the file, too.
            store = f"sqlite:///{tmp_path / 'store.db'}?checksums=off"
        environments.append(StoryEnvironment(tmp_path, store, is_remote=backend == "http"))
        return environments[-1]

    yield make
    for environment in environments:
        environment.__exit__(None, None, None)


@pytest.fixture(params=EVERYWHERE)
def environment(
    request: pytest.FixtureRequest, open_environment: OpenEnvironment
) -> StoryEnvironment:
    return open_environment(request.param)


@pytest.fixture(params=EMBEDDED)
def embedded_environment(
    request: pytest.FixtureRequest, open_environment: OpenEnvironment
) -> StoryEnvironment:
    """For programs that have their own tables in the same database."""
    return open_environment(request.param)
