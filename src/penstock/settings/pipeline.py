"""What can be set about the pipeline."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.domain.errors import InvalidRequest
from penstock.domain.targets import DEFAULT_TARGETS, read_targets

PIB = 1024**5


class Pipeline(msgspec.Struct, frozen=True, kw_only=True):
    max_bad_per_million: Annotated[
        int, Meta(ge=0, le=1_000_000, description="with more bad rows a day is not loaded")
    ] = 0
    targets: Annotated[
        str,
        Meta(description="targets of service: QUEUE wait|service|total TIME PERCENT; or success"),
    ] = DEFAULT_TARGETS
    poison_failures: Annotated[
        int, Meta(ge=1, le=1_000_000, description="failures that make a message poison")
    ] = 3
    poison_crashes: Annotated[
        int, Meta(ge=1, le=1_000_000, description="dead workers that make it poison")
    ] = 2
    poison_returns: Annotated[
        int, Meta(ge=1, le=1_000_000, description="returns without a failure that make it poison")
    ] = 10
    poison_ratio_percent: Annotated[
        int, Meta(ge=0, le=100, description="failing messages that make a kind poison")
    ] = 20
    flapping_changes: Annotated[
        int, Meta(ge=1, le=1_000_000, description="changes a day of a circuit that flaps")
    ] = 6
    cost_per_gib: Annotated[str, Meta(description="what moving 1 GiB costs, in any currency")] = "0"
    storage_bytes: (
        Annotated[int, Meta(ge=1, le=PIB, description="room for messages; tells how long it lasts")]
        | None
    ) = None


def check_pipeline(pipeline: Pipeline) -> None:
    read_targets(pipeline.targets)
    try:
        is_cost = float(pipeline.cost_per_gib) >= 0
    except ValueError:
        is_cost = False
    if not is_cost:
        raise InvalidRequest(
            f"pipeline.cost_per_gib is a number such as 0.09, not {pipeline.cost_per_gib[:40]!r}"
        )
