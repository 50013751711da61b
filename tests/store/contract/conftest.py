"""After every test of the contract the books must balance, and no mistake may have been mended."""

import logging
from collections.abc import Iterator

import pytest

from tests.store.driver import StoreDriver
from tests.store.recount import check_books


@pytest.fixture(autouse=True)
def books_balance(driver: StoreDriver) -> Iterator[None]:
    yield
    check_books(driver)


@pytest.fixture(autouse=True)
def nothing_was_mended(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A batch that breaks is run again one by one, so that its mistake would not show elsewhere.

    Only the store's own words count: servers that other tests share have theirs, at their own time.
    """
    yield
    told = [r for r in caplog.get_records("call") if r.levelno >= logging.WARNING]
    assert [r.getMessage() for r in told if r.name == "penstock.store"] == []
