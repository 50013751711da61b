"""Overrides of the breaker's settings for single circuits.

Only for settings that concern one circuit: the three tasks and the rate of unholding are the same
for all circuits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from penstock.domain.circuit import settings as types
from penstock.domain.circuit.settings import BreakerSettings, check
from penstock.domain.errors import InvalidRequest

MAX_ROUTE_CHARS = 8_192


class BreakerOverrides(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A field that is not set keeps the breaker's default."""

    circuit_check_enabled: types.CircuitCheck | UnsetType = UNSET
    statistics_update_enabled: types.StatisticsUpdate | UnsetType = UNSET
    error_threshold_percentage: types.ErrorThreshold | UnsetType = UNSET
    entries_max_age_ms: types.EntriesMaxAge | UnsetType = UNSET
    min_queue_sample_count: types.MinSamples | UnsetType = UNSET
    max_queue_sample_count: types.MaxSamples | UnsetType = UNSET
    min_open_ms: types.MinOpen | UnsetType = UNSET
    open_growth: types.OpenGrowth | UnsetType = UNSET
    max_open_ms: types.MaxOpen | UnsetType = UNSET
    slow_call_ms: types.SlowCall | UnsetType = UNSET
    single_probe: types.SingleProbe | UnsetType = UNSET

    def values(self) -> dict[str, Any]:
        """The values that are set."""
        found = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in found.items() if value is not UNSET}


NONE = BreakerOverrides()


def merge(defaults: BreakerSettings, overrides: BreakerOverrides) -> BreakerSettings:
    """The settings in force for a circuit."""
    return replace(defaults, **overrides.values())


def read(values: Mapping[str, Any]) -> BreakerOverrides:
    """Parse overrides.  Raises InvalidRequest for unknown names and values out of range."""
    shared = sorted(name for name in values if name in _SHARED)
    if shared:
        raise InvalidRequest(f"{', '.join(shared)}: the same for all circuits; change the defaults")
    try:
        overrides = msgspec.convert(dict(values), BreakerOverrides)
    except msgspec.ValidationError as error:
        raise InvalidRequest(str(error)) from None
    check(merge(BreakerSettings(), overrides))
    return overrides


def change(changes: Mapping[str, Any], before: BreakerOverrides) -> BreakerOverrides:
    """Apply the named changes and keep the others.  Raises InvalidRequest."""
    return read(before.values() | dict(changes))


def check_route(route: str) -> str:
    """Return the pattern of a rule, or the route that jobs name; or raise InvalidRequest."""
    if not 1 <= len(route) <= MAX_ROUTE_CHARS or "\0" in route:
        raise InvalidRequest(f"a route has 1 to {MAX_ROUTE_CHARS} characters, none of them NUL")
    return route


_SHARED = frozenset(BreakerSettings.__struct_fields__) - frozenset(
    BreakerOverrides.__struct_fields__
)
