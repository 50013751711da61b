"""What can be set about the archive."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND


class Archive(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[
        bool,
        Meta(description="write history to the lake; what is not there yet is not forgotten"),
    ] = False
    folder: Annotated[
        str | None,
        Meta(
            description="where the lake is, for all nodes the same; unset: lake in the data folder"
        ),
    ] = None
    every_ms: Annotated[
        int, Meta(ge=SECOND, le=DAY, description="how often what is new is written to the lake")
    ] = 10 * MINUTE
    bodies: Annotated[
        bool, Meta(description="write the bodies of finished messages, too; a restore needs them")
    ] = True
    snapshot_every_ms: Annotated[
        int,
        Meta(ge=0, le=30 * DAY, description="how often a snapshot is taken; 0: only when asked"),
    ] = HOUR
    snapshots: Annotated[
        int, Meta(ge=1, le=100_000, description="how many snapshots are kept, the latest")
    ] = 48
