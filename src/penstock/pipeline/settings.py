"""What the jobs can be told.  The CLI makes it from the settings of the section `pipeline`."""

from __future__ import annotations

import msgspec

from penstock.domain.targets import DEFAULT_TARGETS, Target, read_targets


class JobSettings(msgspec.Struct, frozen=True, kw_only=True):
    # quality: with more bad rows than that a day is not loaded
    max_bad_per_million: int = 0
    # slo
    targets: tuple[Target, ...] = read_targets(DEFAULT_TARGETS)
    # poison: so many in a day are suspicious
    poison_failures: int = 3  # failed attempts of one message
    poison_crashes: int = 2  # workers that died with one message
    poison_returns: int = 10  # times one message came back without failing or ending
    poison_ratio_percent: int = 20  # of the messages of a kind that fail
    flapping_changes: int = 6  # changes of one circuit
    # capacity
    cost_per_gib: float = 0.0
    storage_bytes: int | None = None
