"""Every setting by its key: type, default, range and description, read from the records."""

from __future__ import annotations

from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from penstock.domain.described import within
from penstock.domain.limits import DAY, HOUR, Limits
from penstock.settings.values import Settings

PREFIX = "PENSTOCK_"
MIB = 1024 * 1024

# Limits belong to the domain, which does not know that they are configurable.
_LIMITS = {
    "max_body_bytes": within(1, 64 * MIB, "maximum size of a body"),
    "max_batch": within(1, 100_000, "maximum number of messages or acts in one request"),
    "max_batch_bytes": within(1, 1024 * MIB, "maximum size of a request"),
    "max_claim": within(1, 100_000, "maximum number of messages in one claim or page"),
    "max_answer_bytes": within(
        MIB, 1024 * MIB, "maximum total size of the bodies in one claim or page"
    ),
    "max_wait_ms": within(0, HOUR, "longest time that a claim may wait for messages"),
    "max_lease_ms": within(1, 30 * DAY, "longest lease"),
    "max_attributes": within(0, 10_000, "maximum number of attributes of a message"),
    "max_attribute_bytes": within(0, MIB, "maximum total size of a message's attributes"),
    "max_label_chars": within(
        1, 1_024, "maximum length of a kind, tag, group, dedup key and the like"
    ),
    "max_error_chars": within(1, MIB, "length to which error texts are cut"),
    "max_waiting_claims": within(
        1, 1_000_000, "maximum number of claims that wait at the same time"
    ),
    "max_listeners": within(0, 100_000, "maximum number of concurrent listeners to /v1/live"),
}
_UNKNOWN = Meta()


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    key: str  # "server.port"
    type: type[int] | type[bool] | type[str]
    default: int | bool | str | None
    text: str
    low: int | None = None
    high: int | None = None
    choices: tuple[str, ...] = ()

    @property
    def section(self) -> str:
        return self.key.rpartition(".")[0]

    @property
    def name(self) -> str:
        return self.key.rpartition(".")[2]

    @property
    def env(self) -> str:
        return PREFIX + self.key.replace(".", "_").upper()

    @property
    def is_duration(self) -> bool:
        return self.name.endswith("_ms")

    @property
    def is_size(self) -> bool:
        return self.name.endswith("_bytes")


@cache
def catalogue() -> dict[str, Setting]:
    return {setting.key: setting for setting in _settings(Settings, "")}


def sections() -> frozenset[str]:
    return frozenset(setting.section for setting in catalogue().values()) - {""}


def _settings(struct: type[msgspec.Struct], prefix: str) -> list[Setting]:
    found: list[Setting] = []
    defaults = struct()
    for name, hint in get_type_hints(struct, include_extras=True).items():
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            found += _settings(hint, f"{prefix}{name}.")
        else:
            meta = _LIMITS.get(name, _UNKNOWN) if struct is Limits else _UNKNOWN
            found.append(_setting(prefix + name, getattr(defaults, name), hint, meta))
    return found


def _setting(key: str, default: Any, hint: Any, meta: Meta) -> Setting:
    if get_origin(hint) is Annotated:
        hint, meta = get_args(hint)
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    types = [t for t in get_args(hint) if t is not NoneType] or [hint]
    if get_origin(types[0]) is Annotated:  # an optional number with a range
        types[0], meta = get_args(types[0])
    return Setting(
        key=key,
        type=str if choices else types[0],
        default=default,
        text=meta.description or "",
        low=None if meta.ge is None else int(meta.ge),
        high=None if meta.le is None else int(meta.le),
        choices=choices,
    )
