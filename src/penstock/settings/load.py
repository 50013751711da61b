"""Settings from four places, the later ones winning: defaults, a TOML file, the environment, and
flags or what a program gives.

A mistake anywhere stops the start with a text that names the key, the place and what is allowed.
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
from penstock.settings.read import Value, read
from penstock.settings.values import Settings, check

CONFIG_ENV = PREFIX + "CONFIG"
CONFIG_FILE = "penstock.toml"


class Place(StrEnum):
    DEFAULT = "default"
    FILE = "file"
    ENV = "env"
    FLAG = "flag"
    PROGRAM = "program"


class Source(msgspec.Struct, frozen=True):
    """Where a value came from: which kind of place, and its name there."""

    place: Place
    name: str = ""

    def __str__(self) -> str:
        return self.name or self.place.value


class Flag(msgspec.Struct, frozen=True):
    name: str  # "--port"
    value: str


class Loaded(msgspec.Struct, frozen=True):
    settings: Settings
    sources: dict[str, Source]


def load(
    *,
    config: str | Path | None = None,
    env: Mapping[str, str] | None = None,
    flags: Mapping[str, Flag] | None = None,
    other_env: Collection[str] = (),
    program: Mapping[str, object] | None = None,
) -> Loaded:
    """The settings and where each came from; raises InvalidRequest.

    `other_env` names variables that look like settings but belong to somebody else; `program` has
    values by key, or by section and name.
    """
    env = os.environ if env is None else env
    given: dict[str, tuple[Source, object]] = {}
    given.update(_from_file(config, env))
    given.update(_from_env(env, other_env))
    given.update((key, (Source(Place.FLAG, f.name), f.value)) for key, f in (flags or {}).items())
    given.update(_from_program(program or {}))
    values = {key: _read(key, source, value) for key, (source, value) in given.items()}
    sources = {key: Source(Place.DEFAULT) for key in catalogue()}
    sources.update((key, source) for key, (source, _) in given.items())
    return Loaded(check(_settings(values)), sources)


def check_given(program: Mapping[str, object]) -> Mapping[str, object]:
    """Return what a program gives, or raise InvalidRequest for what is no setting or no value."""
    for key, (source, value) in _from_program(program):
        _read(key, source, value)
    return program


def _from_program(
    program: Mapping[str, object],
) -> Iterator[tuple[str, tuple[Source, object]]]:
    source = Source(Place.PROGRAM, "settings=")
    for key, value in _flat(program):
        yield key, (source, value)


def _flat(document: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for key, value in document.items():
        if isinstance(value, Mapping) and key in sections():
            yield from ((f"{key}.{name}", inner) for name, inner in value.items())
        else:
            yield key, value


def _from_file(
    config: str | Path | None, env: Mapping[str, str]
) -> Iterator[tuple[str, tuple[Source, object]]]:
    named = config or env.get(CONFIG_ENV)
    path = Path(named or CONFIG_FILE)
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if named:
            raise InvalidRequest(f"there is no config file {path}") from None
        return
    except (OSError, ValueError) as error:
        raise InvalidRequest(f"the config file {path} cannot be read: {error}") from None
    source = Source(Place.FILE, str(path))
    for key, value in _flat(document):
        yield key, (source, value)


def _from_env(
    env: Mapping[str, str], other_env: Collection[str]
) -> Iterator[tuple[str, tuple[Source, object]]]:
    by_env = {setting.env: key for key, setting in catalogue().items()}
    ours = tuple(f"{PREFIX}{section.upper()}_" for section in sections())
    for name, value in env.items():
        if name in by_env:
            yield by_env[name], (Source(Place.ENV, name), value)
        elif name.startswith(ours) and name not in other_env:
            raise InvalidRequest(f"there is no setting {name}{_hint(name, by_env)}")


def _read(key: str, source: Source, given: object) -> Value:
    setting = catalogue().get(key)
    if setting is None:
        hint = _hint(key, catalogue())
        raise InvalidRequest(f"there is no setting {key} (from {source}){hint}")
    try:
        return read(setting, given)
    except ValueError as error:
        raise InvalidRequest(f"{key} (from {source}) is {given!r}; allowed: {error}") from None


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
