"""Workers on both stores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from tests.clocks import ManualClock
from tests.runtime.worker.rig import Rig
from tests.store.backends import PostgresHome

MakeRig = Callable[..., Rig]


@pytest.fixture
def url(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    if backend == "sqlite":
        return f"sqlite:///{tmp_path / 'penstock.db'}"
    home: PostgresHome = request.getfixturevalue("postgres_home")
    return home.renew()


@pytest.fixture
def app(url: str, clock: ManualClock) -> Iterator[Penstock]:
    app = Penstock(url, clock=clock)
    app.queue("mail")
    yield app
    app.close()


@pytest.fixture
def make_rig(app: Penstock, clock: ManualClock) -> Iterator[MakeRig]:
    with ExitStack() as stack:

        def make(**order: Any) -> Rig:
            return stack.enter_context(closing(Rig(app, clock, **order)))

        yield make
