"""Each story on every store that it applies to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.stories.stage import Stage

EMBEDDED = ("sqlite", "postgres")
EVERYWHERE = (*EMBEDDED, "http")

OpenStage = Callable[[str], Stage]


@pytest.fixture
def open_stage(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[OpenStage]:
    """`http`: the application reaches a server, which keeps a SQLite store."""
    stages: list[Stage] = []

    def make(backend: str) -> Stage:
        if backend == "postgres":
            store = str(request.getfixturevalue("migrated_url"))
        else:
            # The application's own connections write to the file, too.
            store = f"sqlite:///{tmp_path / 'store.db'}?checksums=off"
        stages.append(Stage(tmp_path, store, is_remote=backend == "http"))
        return stages[-1]

    yield make
    for stage in stages:
        stage.__exit__(None, None, None)


@pytest.fixture(params=EVERYWHERE)
def stage(request: pytest.FixtureRequest, open_stage: OpenStage) -> Stage:
    return open_stage(request.param)


@pytest.fixture(params=EMBEDDED)
def embedded_stage(request: pytest.FixtureRequest, open_stage: OpenStage) -> Stage:
    """For programs that have their own tables in the same database."""
    return open_stage(request.param)
