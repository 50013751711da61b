"""Load the settings: defaults, then a TOML file, the environment, and flags or a program's values.

Later sources override earlier ones.  An invalid value raises an error that names the key, the place
and the allowed values.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path

import msgspec

from penstock.domain.errors import InvalidRequest
from penstock.settings.catalogue import PREFIX, catalogue, sections
from penstock.settings.text import Value, parse
from penstock.settings.values import Settings, check

CONFIG_ENV = PREFIX + "CONFIG"
CONFIG_FILE = "penstock.toml"


class Place(StrEnum):
    DEFAULT = "default"
    FILE = "file"
    ENV = "env"
    FLAG = "flag"
    PROGRAM = "program"


class Origin(msgspec.Struct, frozen=True):
    """Where a value came from: the kind of source, and the value's name there."""

    place: Place
    name: str = ""

    def __str__(self) -> str:
        return self.name or self.place.value


class Flag(msgspec.Struct, frozen=True):
    name: str  # "--port"
    value: str


class Loaded(msgspec.Struct, frozen=True):
    settings: Settings
    origins: dict[str, Origin]


def load(
    *,
    config: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    flags: Mapping[str, Flag] | None = None,
    other_env: Collection[str] = (),
    program: Mapping[str, object] | None = None,
) -> Loaded:
    """Return the settings and the origin of each; raise InvalidRequest.

    `other_env` names variables that look like settings but belong to flags; `program` maps keys,
    or sections and names, to values.
    """
    env = os.environ if env is None else env
    given: dict[str, tuple[Origin, object]] = {}
    given.update(_from_file(config, env))
    given.update(_from_env(env, other_env))
    given.update((key, (Origin(Place.FLAG, f.name), f.value)) for key, f in (flags or {}).items())
    given.update(_from_program(program or {}))
    values = {key: _parse(key, origin, value) for key, (origin, value) in given.items()}
    origins = {key: Origin(Place.DEFAULT) for key in catalogue()}
    origins.update((key, origin) for key, (origin, _) in given.items())
    return Loaded(check(_settings(values)), origins)


def check_given(program: Mapping[str, object]) -> Mapping[str, object]:
    """Return a program's values; raise InvalidRequest for an unknown key or an invalid value."""
    for key, (origin, value) in _from_program(program):
        _parse(key, origin, value)
    return program


def _from_program(
    program: Mapping[str, object],
) -> Iterator[tuple[str, tuple[Origin, object]]]:
    origin = Origin(Place.PROGRAM, "settings=")
    for key, value in _flat(program):
        yield key, (origin, value)


def _flat(document: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for key, value in document.items():
        if isinstance(value, Mapping) and key in sections():
            yield from ((f"{key}.{name}", inner) for name, inner in value.items())
        else:
            yield key, value


def _from_file(
    config: str | Path | None, env: Mapping[str, str]
) -> Iterator[tuple[str, tuple[Origin, object]]]:
    named = config or env.get(CONFIG_ENV)
    path = Path(named or CONFIG_FILE)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if named:
            raise InvalidRequest(f"config file {path} does not exist") from None
        return
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"cannot read config file {path}: {error}") from None
    origin = Origin(Place.FILE, str(path))
    for key, value in _flat(document):
        yield key, (origin, value)


def _from_env(
    env: Mapping[str, str], other_env: Collection[str]
) -> Iterator[tuple[str, tuple[Origin, object]]]:
    by_env = {setting.env: key for key, setting in catalogue().items()}
    ours = tuple(f"{PREFIX}{section.upper()}_" for section in sections())
    for name, value in env.items():
        if name in by_env:
            yield by_env[name], (Origin(Place.ENV, name), value)
        elif name.startswith(ours) and name not in other_env:
            raise InvalidRequest(f"unknown setting {name}{_hint(name, by_env)}")


def _parse(key: str, origin: Origin, given: object) -> Value:
    setting = catalogue().get(key)
    if setting is None:
        hint = _hint(key, catalogue())
        raise InvalidRequest(f"unknown setting {key} (from {origin}){hint}")
    try:
        return parse(setting, given)
    except ValueError as error:
        raise InvalidRequest(f"{key} (from {origin}) is {given!r}; allowed: {error}") from None


def _settings(values: Mapping[str, Value]) -> Settings:
    nested: dict[str, object] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        inside = nested.setdefault(section, {}) if section else nested
        assert isinstance(inside, dict)
        inside[name] = value
    return msgspec.convert(nested, Settings)


def _hint(name: str, known: Collection[str]) -> str:
    close = get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""
