"""What can be set about the console."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.domain.limits import DAY, HOUR, MINUTE


class Console(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[bool, Meta(description="serve the console at /console")] = True
    session_ms: Annotated[
        int, Meta(ge=MINUTE, le=30 * DAY, description="how long a login in the console lasts")
    ] = 12 * HOUR
