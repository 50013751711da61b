"""What can be set about the pipeline's tables that are shown."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta


class Insights(msgspec.Struct, frozen=True, kw_only=True):
    folder: Annotated[
        str | None,
        Meta(description="where the pipeline's tables are; unset: lake/derived in the data folder"),
    ] = None
