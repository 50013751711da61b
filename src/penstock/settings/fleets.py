"""The file of fleets, read as a whole: what is wrong in it is told with the place where it is."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

import msgspec

from penstock.domain.duration import duration_ms
from penstock.domain.errors import DefaultProfileMissing, FleetsRefused, SourceUnknown
from penstock.domain.scaling.fleet import (
    DEFAULT,
    AlertSpec,
    CommandSpec,
    Fleet,
    Fleets,
    Kubernetes,
    Processes,
)
from penstock.domain.scaling.fleet_schedule import Period
from penstock.domain.scaling.fleet_sources import OWN, SourceSpec
from penstock.domain.scaling.pressure import PressureLimits, check_limits
from penstock.domain.scaling.recommendation import Profile
from penstock.settings.fleet_sources import check_goals, check_source, check_url

SOURCES = get_args(SourceSpec)
SOURCE_KINDS = tuple(str(kind.__struct_config__.tag) for kind in SOURCES)
MAX_FLEETS = 1_000
_TABLES: dict[str, Any] = {"profiles": Profile, "sources": SourceSpec, "fleets": Fleet}
_KINDS = ("processes", "command", "kubernetes", "external")
_REPLICAS = (Processes, CommandSpec, Kubernetes)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_PLACE = re.compile(r" - at `\$(.*)`$")


class FleetsFile:
    """A file that may change at any time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_as: tuple[int, ...] | None = None

    def read(self) -> Fleets:
        """Raises FleetsRefused, DefaultProfileMissing and SourceUnknown."""
        self._read_as = self._looks()  # before it is read: a change meanwhile is a change
        return read_fleets(self._path)

    def is_changed(self) -> bool:
        """Since it was read last, whether that went well or not."""
        return self._looks() != self._read_as

    def _looks(self) -> tuple[int, ...] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def read_fleets(path: Path) -> Fleets:
    """Raises FleetsRefused, DefaultProfileMissing and SourceUnknown."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FleetsRefused(f"there is no file of fleets {path}") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FleetsRefused(f"the file of fleets {path} cannot be read: {error}") from None
    try:
        return parse_fleets(text)
    except FleetsRefused as error:
        raise type(error)(f"{path}: {error}") from None


def parse_fleets(text: str) -> Fleets:
    try:
        given = tomllib.loads(text)
    except ValueError as error:
        raise FleetsRefused(f"this is no TOML: {error}") from None
    _refuse_unknown_kinds(given)
    given = _with_durations(given, ())
    found = {section: _tables(given.pop(section, {}), section) for section in _TABLES}
    fleets = msgspec.structs.replace(_converted(given, Fleets, ""), **found)
    named = {name: msgspec.structs.replace(it, name=name) for name, it in fleets.fleets.items()}
    return _checked(msgspec.structs.replace(fleets, fleets=named))


def _tables(given: object, section: str) -> dict[str, Any]:
    """One by one, so that what is wrong can be told with its name."""
    if not isinstance(given, dict):
        raise FleetsRefused(f"{section}: these are tables: [{section}.NAME]")
    kind = _TABLES[section]
    return {name: _converted(one, kind, f"{section}.{name}") for name, one in given.items()}


def _converted(given: object, kind: Any, place: str) -> Any:
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise FleetsRefused(_told(str(error), place)) from None


def _refuse_unknown_kinds(given: dict[str, Any]) -> None:
    """Before the rest is looked at: a source nobody can read is a failure of its own."""
    sources = given.get("sources", {})
    for name, source in sources.items() if isinstance(sources, dict) else ():
        kind = source.get("kind") if isinstance(source, dict) else None
        if kind not in SOURCE_KINDS:
            raise SourceUnknown(
                f"sources.{name}: there is no kind of source {kind!r}; {_among(SOURCE_KINDS)}"
            )


def _checked(fleets: Fleets) -> Fleets:
    if DEFAULT not in fleets.profiles:
        raise DefaultProfileMissing(f"there must be a profile named {DEFAULT}: [profiles.default]")
    if not fleets.fleets:
        raise FleetsRefused("there is no fleet in it: [fleets.NAME]")
    if len(fleets.fleets) > MAX_FLEETS:
        raise FleetsRefused(f"there are more than {MAX_FLEETS} fleets in it")
    check_limits(fleets.pressure)
    if fleets.alerts.url is not None:
        check_url("alerts.url", fleets.alerts.url, has_query=True)
    for name, source in fleets.sources.items():
        check_source(name, source)
    for name, fleet in fleets.fleets.items():
        _check_fleet(name, fleet, fleets)
    return fleets


def _check_fleet(name: str, fleet: Fleet, fleets: Fleets) -> None:
    if not _NAME.fullmatch(name):
        raise FleetsRefused(f"fleets.{name[:100]}: a name has letters, digits, _ . - only")
    if fleet.source not in (OWN, *fleets.sources):
        known = _among((OWN, *fleets.sources))
        raise SourceUnknown(f"fleets.{name}: there is no source {fleet.source!r}; {known}")
    check_goals(name, fleet, fleets)
    if fleet.min > fleet.max:
        raise FleetsRefused(f"fleets.{name}: min is {fleet.min}, and max only {fleet.max}")
    for number, period in enumerate(fleet.schedule):
        least = fleet.min if period.min is None else period.min
        most = fleet.max if period.max is None else period.max
        if least > most:
            place = f"fleets.{name}.schedule[{number}]"
            raise FleetsRefused(f"{place}: min is {least}, and max only {most}; set both there")


def _with_durations(given: Any, place: tuple[str, ...]) -> Any:
    """`interval_ms = "10s"` means 10000, as in the settings."""
    if isinstance(given, dict):
        return {key: _with_durations(value, (*place, key)) for key, value in given.items()}
    if isinstance(given, str) and place and place[-1].endswith("_ms"):
        try:
            return duration_ms(given)
        except ValueError as error:
            raise FleetsRefused(f"{'.'.join(place)}: {error}") from None
    return given


def _told(text: str, place: str) -> str:
    """msgspec's own words, with the place in front and a hint at the key that may be meant."""
    inside = _PLACE.search(text)
    where = ".".join(filter(None, (place, inside[1].lstrip(".") if inside else "")))
    what = _PLACE.sub("", text)
    unknown = re.search("unknown field `(.*)`", what)
    if unknown:
        what += _hint(unknown[1])
    if where.endswith("replicas.kind"):
        what += f"; {_among(_KINDS)}"
    return f"{where}: {what}" if where else what


def _hint(name: str) -> str:
    close = get_close_matches(name, _all_keys(), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _all_keys() -> set[str]:
    found: set[str] = set()
    for struct in (
        Fleets,
        Fleet,
        Period,
        AlertSpec,
        PressureLimits,
        Profile,
        *SOURCES,
        *_REPLICAS,
    ):
        found.update(struct.__struct_encode_fields__)
    return found


def _among(known: Iterable[str]) -> str:
    return f"there are {', '.join(known)}"
