"""The pytest plugin, installed with Penstock and loaded by pytest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from penstock.client.app import Penstock
    from penstock.testing.clock import ManualClock
    from penstock.testing.kit import Kit


@pytest.fixture
def penstock_clock() -> ManualClock:
    """A manual clock, shared by all kits of this test."""
    from penstock.testing.clock import ManualClock

    return ManualClock()


@pytest.fixture
def penstock_kit(penstock_clock: ManualClock) -> Iterator[Callable[..., Kit]]:
    """`kit = penstock_kit(app)`; the kit is closed when the test ends."""
    from penstock.testing.kit import Kit

    with ExitStack() as stack:

        def make(app: Penstock, *, url: str | None = None) -> Kit:
            return stack.enter_context(Kit(app, clock=penstock_clock, url=url))

        yield make
