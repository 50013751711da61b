"""A notification as these tests record it."""

from __future__ import annotations

from datetime import datetime

import msgspec


class InvoiceDue(msgspec.Struct):
    invoice: int
    at: datetime | None = None
