"""Every setting by its key: type, default, range and description, read from the records."""

from __future__ import annotations

import dataclasses
from functools import cache
from types import NoneType
from typing import Any, Literal, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from penstock.settings.values import Settings

PREFIX = "PENSTOCK_"


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


def _settings(section: type, prefix: str) -> list[Setting]:
    found: list[Setting] = []
    hints = get_type_hints(section)
    for field in dataclasses.fields(section):
        hint = hints[field.name]
        if dataclasses.is_dataclass(hint) and isinstance(hint, type):
            found += _settings(hint, f"{prefix}{field.name}.")
        elif "setting" in field.metadata:
            found.append(_setting(prefix + field.name, field, hint))
    return found


def _setting(key: str, field: dataclasses.Field[Any], hint: Any) -> Setting:
    meta: Meta = field.metadata["setting"]
    choices = get_args(hint) if get_origin(hint) is Literal else ()
    types = [t for t in get_args(hint) if t is not NoneType] or [hint]
    return Setting(
        key=key,
        type=str if choices else types[0],
        default=cast("int | bool | str | None", field.default),
        text=meta.description or "",
        low=None if meta.ge is None else int(meta.ge),
        high=None if meta.le is None else int(meta.le),
        choices=choices,
    )
