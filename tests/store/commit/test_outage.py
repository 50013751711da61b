"""How outages of a store are logged."""

from __future__ import annotations

import pytest

from penstock.domain.errors import StoreUnavailable
from penstock.store.commit.outage import StoreOutage

BROKEN = StoreUnavailable("no disk")


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_reads_that_work_do_not_end_an_outage_of_writes(caplog: pytest.LogCaptureFixture) -> None:
    outage = StoreOutage()

    for _ in range(3):
        outage.failed(BROKEN, is_write=True)
        outage.worked(is_write=False)
    outage.worked(is_write=True)

    assert warnings(caplog) == ["store unavailable: no disk", "store available again"]


def test_a_write_that_works_ends_an_outage_of_reads(caplog: pytest.LogCaptureFixture) -> None:
    outage = StoreOutage()

    for _ in range(2):
        outage.failed(BROKEN, is_write=False)
        outage.failed(BROKEN, is_write=True)
        outage.worked(is_write=True)
        outage.worked(is_write=False)

    assert warnings(caplog) == ["store unavailable: no disk", "store available again"] * 2
