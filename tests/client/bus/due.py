"""Notifications as these tests send them: for moments counted from noon."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from tests.clocks import NOON

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class InvoiceDue(msgspec.Struct):
    invoice: int
    at: datetime | None = None


def moment(**after: int) -> datetime:
    return EPOCH + timedelta(milliseconds=NOON) + timedelta(**after)
