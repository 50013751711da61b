"""What can be set about the autoscaler; all the rest is said in the file of fleets."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class Scaling(msgspec.Struct, frozen=True, kw_only=True):
    fleets_file: Annotated[
        str | None,
        Meta(description="file of fleets (TOML); a server with one looks after them, too"),
    ] = None
