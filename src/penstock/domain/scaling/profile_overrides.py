"""Settings of a fleet's profile that were changed through the API: they override the file's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from penstock.domain.described import about
from penstock.domain.errors import InvalidRequest
from penstock.domain.scaling.recommendation import MAX_REPLICAS, Profile


class ProfileOverrides(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A field that is not set keeps the value of the fleets file."""

    samples_needed: (
        Annotated[int, about("Number of samples per decision.", ge=1, le=10_000)] | UnsetType
    ) = UNSET
    backlog_goal_s: (
        Annotated[int, about("Seconds in which the backlog should be cleared.", ge=1, le=10**9)]
        | UnsetType
    ) = UNSET
    most_up: (
        Annotated[
            int, about("Maximum number of workers that one decision adds.", ge=1, le=MAX_REPLICAS)
        ]
        | UnsetType
    ) = UNSET

    def values(self) -> dict[str, int]:
        """The values that are set."""
        found = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in found.items() if value is not UNSET}


NO_OVERRIDES = ProfileOverrides()
OVERRIDABLE = ProfileOverrides.__struct_fields__


def read_overrides(values: Mapping[str, Any]) -> ProfileOverrides:
    """Raises InvalidRequest for unknown names and values out of range."""
    try:
        return msgspec.convert(dict(values), ProfileOverrides)
    except msgspec.ValidationError as error:
        raise InvalidRequest(str(error)) from None


def merge_profile(profile: Profile, overrides: ProfileOverrides) -> Profile:
    """The profile in force for a fleet."""
    return msgspec.structs.replace(profile, **overrides.values())
