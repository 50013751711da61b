"""Blocking calls, on an event loop and off it."""

from __future__ import annotations

import asyncio

import pytest

from penstock.client.blocking import run_off_loop

pytestmark = pytest.mark.no_store("declaring")


def _fail() -> None:
    raise ValueError("no")


def test_an_error_comes_alone_and_not_as_one_that_followed_another() -> None:
    with pytest.raises(ValueError, match="no") as caught:
        run_off_loop(_fail)

    assert caught.value.__context__ is None


def test_on_an_event_loop_the_error_is_the_same() -> None:
    async def main() -> None:
        run_off_loop(_fail)

    with pytest.raises(ValueError, match="no"):
        asyncio.run(main())
