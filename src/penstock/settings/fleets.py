"""The fleets file: parsing and checking.  Errors name the place in the file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args
from urllib.parse import urlsplit

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
from penstock.domain.scaling.fleet_sources import (
    OWN,
    OwnSource,
    PrometheusSource,
    RabbitSource,
    RedisSource,
    SourceSpec,
    SqsSource,
)
from penstock.domain.scaling.pressure import PressureLimits, check_limits
from penstock.domain.scaling.recommendation import Profile

_HTTP = ("http", "https")
_REDIS = ("redis", "rediss")

SOURCES = get_args(SourceSpec)
SOURCE_KINDS = tuple(str(kind.__struct_config__.tag) for kind in SOURCES)
MAX_FLEETS = 1_000
_TABLES: dict[str, Any] = {"profiles": Profile, "sources": SourceSpec, "fleets": Fleet}
_KINDS = ("processes", "command", "kubernetes", "external")
_REPLICAS = (Processes, CommandSpec, Kubernetes)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_PLACE = re.compile(r" - at `\$(.*)`$")

T = TypeVar("T")


class FleetsFile:
    """A fleets file that may change while it is in use."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, ...] | None = None

    def read(self) -> Fleets:
        """Parse the file; raises FleetsRefused, DefaultProfileMissing and SourceUnknown."""
        self._seen = self._fingerprint()  # noted first, so that a change during the read is noticed
        return read_fleets(self._path)

    def is_changed(self) -> bool:
        """Whether the file has changed since the last read, successful or not."""
        return self._fingerprint() != self._seen

    def _fingerprint(self) -> tuple[int, ...] | None:
        try:
            stat = self._path.stat()
        except OSError:
            return None
        return stat.st_mtime_ns, stat.st_size, stat.st_ino


def read_fleets(path: Path) -> Fleets:
    """Parse the text; raises FleetsRefused, DefaultProfileMissing and SourceUnknown."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FleetsRefused(f"fleets file {path} does not exist") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FleetsRefused(f"cannot read fleets file {path}: {error}") from None
    try:
        return parse_fleets(text)
    except FleetsRefused as error:
        raise type(error)(f"{path}: {error}") from None


def parse_fleets(text: str) -> Fleets:
    try:
        given = tomllib.loads(text)
    except ValueError as error:
        raise FleetsRefused(f"not valid TOML: {error}") from None
    _refuse_unknown_kinds(given)
    given = _with_durations(given, ())
    tables = {section: _tables(given.pop(section, {}), section) for section in _TABLES}
    fleets = msgspec.structs.replace(_convert(given, Fleets, ""), **tables)
    named = {name: msgspec.structs.replace(it, name=name) for name, it in fleets.fleets.items()}
    fleets = msgspec.structs.replace(fleets, fleets=named)
    _check(fleets)
    return fleets


def _tables(given: object, section: str) -> dict[str, Any]:
    """Convert the tables one by one, so that an error names its table."""
    if not isinstance(given, dict):
        raise FleetsRefused(f"{section}: use tables: [{section}.NAME]")
    kind = _TABLES[section]
    return {name: _convert(one, kind, f"{section}.{name}") for name, one in given.items()}


def _convert(given: object, kind: type[T], place: str) -> T:
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        raise FleetsRefused(_error_text(str(error), place)) from None


def _refuse_unknown_kinds(given: dict[str, Any]) -> None:
    """Check the kinds of sources first, because they have an error of their own."""
    sources = given.get("sources", {})
    for name, source in sources.items() if isinstance(sources, dict) else ():
        kind = source.get("kind") if isinstance(source, dict) else None
        if kind not in SOURCE_KINDS:
            raise SourceUnknown(
                f"sources.{name}: unknown kind {kind!r}; {_known_names(SOURCE_KINDS)}"
            )


def _check(fleets: Fleets) -> None:
    if DEFAULT not in fleets.profiles:
        raise DefaultProfileMissing(f"the profile {DEFAULT} is missing; add [profiles.{DEFAULT}]")
    if not fleets.fleets:
        raise FleetsRefused("the file declares no fleet; add [fleets.NAME]")
    if len(fleets.fleets) > MAX_FLEETS:
        raise FleetsRefused(
            f"the file declares {len(fleets.fleets)} fleets; at most {MAX_FLEETS} are allowed"
        )
    check_limits(fleets.pressure)
    if fleets.alerts.url is not None:
        _check_url("alerts.url", fleets.alerts.url, has_query=True)
    for name, source in fleets.sources.items():
        _check_source(name, source)
    for name, fleet in fleets.fleets.items():
        _check_fleet(name, fleet, fleets)


def _check_fleet(name: str, fleet: Fleet, fleets: Fleets) -> None:
    if not _NAME.fullmatch(name):
        raise FleetsRefused(f"fleets.{name[:100]}: use only letters, digits, _ . - in a name")
    if fleet.source not in (OWN, *fleets.sources):
        known = _known_names((OWN, *fleets.sources))
        raise SourceUnknown(f"fleets.{name}: unknown source {fleet.source!r}; {known}")
    _check_goals(name, fleet, fleets)
    if fleet.min > fleet.max:
        raise FleetsRefused(f"fleets.{name}: min ({fleet.min}) is greater than max ({fleet.max})")
    for number, period in enumerate(fleet.schedule):
        least = fleet.min if period.min is None else period.min
        most = fleet.max if period.max is None else period.max
        if least > most:
            place = f"fleets.{name}.schedule[{number}]"
            raise FleetsRefused(
                f"{place}: min ({least}) is greater than max ({most}); set both here"
            )


def _check_source(name: str, source: SourceSpec) -> None:
    if name == OWN and not isinstance(source, OwnSource):
        raise FleetsRefused(f"sources.{OWN}: this name is reserved for the queues of this store")
    place = f"sources.{name}"
    match source:
        case RabbitSource():
            _one_of(place, source, "password_file", "password_env")
            _check_url(f"{place}.endpoint", source.endpoint, has_query=False)
        case SqsSource():
            if source.endpoint is not None:
                _check_url(f"{place}.endpoint", source.endpoint, has_query=False)
        case RedisSource():
            _one_of(place, source, "password_file", "password_env")
            _check_url(f"{place}.url", source.url, has_query=False, schemes=_REDIS)
            _check_redis(place, source)
        case PrometheusSource():
            _one_of(place, source, "token_file", "token_env")
            _check_url(f"{place}.endpoint", source.endpoint, has_query=False)
            _check_prometheus(place, source)


def _check_goals(name: str, fleet: Fleet, fleets: Fleets) -> None:
    """Raise FleetsRefused if the profile has a goal for which the source has no data."""
    profile, source = fleets.profile_of(fleet), fleets.source_of(fleet)
    named = fleet.profile if fleet.profile in fleets.profiles else DEFAULT
    of = f"fleets.{name}: profile {named}"
    if profile.oldest_goal_ms is not None and not source.reports_ages:
        raise FleetsRefused(
            f"{of} has oldest_goal_ms, but source {fleet.source} ({_kind(source)}) does not report "
            "the age of messages; use another profile"
        )
    if profile.needs_rates and not source.reports_rates:
        raise FleetsRefused(
            f"{of} has backlog_goal_s, but source {fleet.source} ({_kind(source)}) does not report "
            "rates; set messages_per_worker in the profile"
        )


def _check_url(place: str, url: str, *, has_query: bool, schemes: Sequence[str] = _HTTP) -> None:
    """Raise FleetsRefused with a text that omits the URL, which may contain a secret."""
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:  # an invalid port or IPv6 address
        is_url = False
    if not is_url or re.search(r"\s", url):
        known = " or ".join(f"{scheme}://" for scheme in schemes)
        raise FleetsRefused(f"{place}: not a URL; use {known}, a host and a port")
    if parts.username is not None or parts.password is not None:
        raise FleetsRefused(f"{place}: the URL must not contain credentials; remove them")
    if not has_query and (parts.query or parts.fragment):
        raise FleetsRefused(f"{place}: the URL must not have a query (?) or a fragment (#)")


def _one_of(place: str, source: SourceSpec, *names: str) -> None:
    if all(getattr(source, name) for name in names):
        raise FleetsRefused(f"{place}: set {' or '.join(names)}, not both")


def _check_redis(place: str, source: RedisSource) -> None:
    if not re.fullmatch(r"/?|/[0-9]{1,5}", urlsplit(source.url).path):
        raise FleetsRefused(f"{place}.url: the path must be empty or the number of a database")
    if source.type == "stream" and source.group is None:
        raise FleetsRefused(f"{place}: a stream needs group, the name of its consumer group")
    if source.type == "list" and source.group is not None:
        raise FleetsRefused(f'{place}: group requires type = "stream"')


def _check_prometheus(place: str, source: PrometheusSource) -> None:
    if source.oldest_query and not (source.leased_query or source.consume_query):
        raise FleetsRefused(
            f"{place}: oldest_query also needs leased_query or consume_query, which show whether "
            "messages are being handled"
        )
    if source.user is not None and not (source.token_file or source.token_env):
        raise FleetsRefused(f"{place}: user needs token_file or token_env with its password")


def _kind(source: SourceSpec) -> str:
    return str(source.__struct_config__.tag)


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


def _error_text(text: str, place: str) -> str:
    """msgspec's error, preceded by the place and followed by the closest known key as a hint."""
    inside = _PLACE.search(text)
    where = ".".join(filter(None, (place, inside[1].lstrip(".") if inside else "")))
    what = _PLACE.sub("", text)
    unknown = re.search("unknown field `(.*)`", what)
    if unknown:
        what += _hint(unknown[1])
    if where.endswith("replicas.kind"):
        what += f"; {_known_names(_KINDS)}"
    return f"{where}: {what}" if where else what


def _hint(name: str) -> str:
    close = get_close_matches(name, _all_keys(), n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _all_keys() -> set[str]:
    records = (Fleets, Fleet, Period, AlertSpec, PressureLimits, Profile, *SOURCES, *_REPLICAS)
    return {field for record in records for field in record.__struct_encode_fields__}


def _known_names(names: Iterable[str]) -> str:
    return f"known: {', '.join(names)}"
