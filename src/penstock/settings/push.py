"""Settings of push deliveries and of the gateleen-compatible resources."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from penstock.domain.delivery.addresses import networks
from penstock.domain.described import about, within
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND

_PATH = re.compile(r"(/[A-Za-z0-9_.~-]+)+/?")
_RESERVED = ("v1", "docs", "healthz", "readyz", "metrics")


class PushSettings(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[bool, about("accept requests to push, and serve gateleen's resources")] = (
        True
    )
    path: Annotated[str, about("path under which requests are queued as deliveries")] = "/push"
    rules_path: Annotated[str, about("path of the routing rules")] = "/admin/v1/routing/rules"
    breaker_path: Annotated[str, about("path of the circuit breaker's configuration")] = (
        "/admin/v1/circuitbreaker"
    )
    logging_path: Annotated[str, about("path of the configuration of payload logging")] = (
        "/admin/v1/logging"
    )
    circuits_path: Annotated[str, about("path prefix of gateleen's circuit API")] = (
        "/queuecircuitbreaker/circuit/"
    )
    log_changes: Annotated[
        bool, about("log the payloads of changes that the logging configuration selects")
    ] = False
    deliver: Annotated[
        bool, about("push deliveries from this node; false: leave that to other nodes")
    ] = True
    concurrency: Annotated[
        int, within(1, 10_000, "maximum number of concurrent pushes of this node")
    ] = 200
    lease_ms: Annotated[
        int,
        within(
            SECOND, HOUR, "time after which deliveries in flight on a killed node are pushed again"
        ),
    ] = MINUTE
    retry_ms: Annotated[
        int, within(1, DAY, "delay after a failure if the route has no retryIntervals")
    ] = 10 * SECOND
    honour_retry_after: Annotated[
        bool, about("extend the delay after a failure to its Retry-After header")
    ] = False
    max_retry_after_ms: Annotated[int, within(0, DAY, "longest Retry-After that is honoured")] = (
        HOUR
    )
    scan_ms: Annotated[
        int, within(100, HOUR, "interval between searches for deliveries without a hint")
    ] = 5 * SECOND
    keep_alive_ms: Annotated[
        int, within(1, HOUR, "how long an idle connection to an endpoint is kept open")
    ] = 1_500  # less than gunicorn's 2 s, the shortest among common servers
    deny: Annotated[
        str | None,
        about(
            "comma-separated networks that deliveries never reach; link-local and "
            "metadata addresses are always denied"
        ),
    ] = None

    @property
    def paths(self) -> dict[str, str]:
        """The served paths by setting, without a trailing slash."""
        names = ("path", "rules_path", "breaker_path", "logging_path", "circuits_path")
        return {name: getattr(self, name).rstrip("/") for name in names}


def check_push(push: PushSettings) -> None:
    """Raise InvalidRequest for invalid or contradictory values."""
    _check_networks(push.deny or "")
    checked: dict[str, str] = {}
    for name, path in push.paths.items():
        given = getattr(push, name)
        if not _PATH.fullmatch(given):
            raise InvalidRequest(f"push.{name} is {given!r}; use a path like /admin/v1/rules")
        if path.split("/")[1] in _RESERVED:
            raise InvalidRequest(f"push.{name} must not begin with /{path.split('/')[1]}")
        for other, place in checked.items():
            if f"{path}/".startswith(f"{place}/") or f"{place}/".startswith(f"{path}/"):
                raise InvalidRequest(
                    f"push.{name} ({path}) and push.{other} ({place}) overlap; "
                    "neither may contain the other"
                )
        checked[name] = path


def _check_networks(text: str) -> None:
    for part in filter(None, map(str.strip, text.split(","))):
        try:
            networks(part)
        except ValueError:
            raise InvalidRequest(
                f"push.deny has {part[:60]!r}; use networks like 10.0.0.0/8"
            ) from None
