"""After every test of the contract the counters must balance, and no batch may have failed."""

import logging
from collections.abc import Iterator

import pytest

from tests.store.backends import every_backend
from tests.store.counter_checks import check_counters
from tests.store.driver import StoreDriver

__all__ = ["every_backend"]  # a fixture


@pytest.fixture(autouse=True)
def counters_balance(driver: StoreDriver) -> Iterator[None]:
    yield
    check_counters(driver)


@pytest.fixture(autouse=True)
def nothing_was_mended(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A batch that fails is run again one by one, so that the failure would not show elsewhere.

    Only the store's own words count: servers that other tests share have theirs, at their own time.
    """
    yield
    records = [r for r in caplog.get_records("call") if r.levelno >= logging.WARNING]
    assert [r.getMessage() for r in records if r.name == "penstock.store"] == []
