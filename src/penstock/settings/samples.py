"""What can be set about the samples that graphs are made of."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class Samples(msgspec.Struct, frozen=True, kw_only=True):
    retention_days: Annotated[
        int, Meta(ge=4, le=3660, description="how many days of graphs are kept")
    ] = 90
