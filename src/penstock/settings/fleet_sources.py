"""Checks of the sources of a file of fleets, and of what fleets expect of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from penstock.domain.errors import FleetsRefused
from penstock.domain.scaling.fleet import DEFAULT, Fleet, Fleets
from penstock.domain.scaling.fleet_sources import (
    OWN,
    OwnSource,
    PrometheusSource,
    RabbitSource,
    RedisSource,
    SourceSpec,
    SqsSource,
)

HTTP = ("http", "https")
REDIS = ("redis", "rediss")


def check_source(name: str, source: SourceSpec) -> None:
    """Raises FleetsRefused."""
    if name == OWN and not isinstance(source, OwnSource):
        raise FleetsRefused(f"sources.{OWN}: this name is that of our own queues")
    place = f"sources.{name}"
    match source:
        case RabbitSource():
            _one_of(place, source, "password_file", "password_env")
            check_url(f"{place}.endpoint", source.endpoint, has_query=False)
        case SqsSource():
            if source.endpoint is not None:
                check_url(f"{place}.endpoint", source.endpoint, has_query=False)
        case RedisSource():
            _one_of(place, source, "password_file", "password_env")
            check_url(f"{place}.url", source.url, has_query=False, schemes=REDIS)
            _check_redis(place, source)
        case PrometheusSource():
            _one_of(place, source, "token_file", "token_env")
            check_url(f"{place}.endpoint", source.endpoint, has_query=False)
            _check_prometheus(place, source)


def check_goals(name: str, fleet: Fleet, fleets: Fleets) -> None:
    """A goal needs what the source reports; raises FleetsRefused."""
    profile, source = fleets.profile_of(fleet), fleets.source_of(fleet)
    named = fleet.profile if fleet.profile in fleets.profiles else DEFAULT
    of = f"fleets.{name}: profile {named}"
    if profile.oldest_goal_ms is not None and not source.reports_ages:
        raise FleetsRefused(
            f"{of} has oldest_goal_ms, but source {fleet.source} ({_kind(source)}) does not report "
            "how old messages are; use another profile"
        )
    if profile.needs_rates and not source.reports_rates:
        raise FleetsRefused(
            f"{of} has backlog_goal_s, but source {fleet.source} ({_kind(source)}) does not report "
            "rates; set messages_per_worker in the profile"
        )


def check_url(place: str, url: str, *, has_query: bool, schemes: Sequence[str] = HTTP) -> None:
    """Raises FleetsRefused.  The text does not repeat the URL, which may hold a secret."""
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:  # of the port, or of an IPv6 address
        is_url = False
    if not is_url or re.search(r"\s", url):
        known = " or ".join(f"{scheme}://" for scheme in schemes)
        raise FleetsRefused(f"{place}: not a URL: write {known}, a host and a port")
    if parts.username is not None or parts.password is not None:
        raise FleetsRefused(f"{place}: a URL with credentials is not taken; remove them")
    if not has_query and (parts.query or parts.fragment):
        raise FleetsRefused(f"{place}: a URL without a query (?) or a fragment (#) is needed")


def _one_of(place: str, source: SourceSpec, *names: str) -> None:
    if all(getattr(source, name) for name in names):
        raise FleetsRefused(f"{place}: say {' or '.join(names)}, not both")


def _check_redis(place: str, source: RedisSource) -> None:
    if not re.fullmatch(r"/?|/[0-9]{1,5}", urlsplit(source.url).path):
        raise FleetsRefused(f"{place}.url: after the host there is only the number of a database")
    if source.type == "stream" and source.group is None:
        raise FleetsRefused(f"{place}: a stream needs a group, the consumers' one")
    if source.type == "list" and source.group is not None:
        raise FleetsRefused(f'{place}: group goes with type = "stream"')


def _check_prometheus(place: str, source: PrometheusSource) -> None:
    if source.oldest_query and not (source.leased_query or source.consume_query):
        raise FleetsRefused(
            f"{place}: oldest_query needs leased_query or consume_query beside it, which tell "
            "whether anything moves"
        )
    if source.user is not None and not (source.token_file or source.token_env):
        raise FleetsRefused(f"{place}: user needs token_file or token_env, for its password")


def _kind(source: SourceSpec) -> str:
    return str(source.__struct_config__.tag)
