"""Settings of push deliveries and of the gateleen-compatible resources."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.domain.delivery.addresses import networks
from penstock.domain.described import setting
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND

_PATH = re.compile(r"(/[A-Za-z0-9_.~-]+)+/?")
_RESERVED = ("v1", "docs", "healthz", "readyz", "metrics")


@dataclass(frozen=True, kw_only=True)
class PushSettings:
    enabled: bool = setting(True, "accept requests to push, and serve gateleen's resources")
    path: str = setting("/push", "path under which requests are queued as deliveries")
    rules_path: str = setting("/admin/v1/routing/rules", "path of the routing rules")
    breaker_path: str = setting(
        "/admin/v1/circuitbreaker", "path of the circuit breaker's configuration"
    )
    logging_path: str = setting("/admin/v1/logging", "path of the configuration of payload logging")
    circuits_path: str = setting(
        "/queuecircuitbreaker/circuit/", "path prefix of gateleen's circuit API"
    )
    log_changes: bool = setting(
        False, "log the payloads of changes that the logging configuration selects"
    )
    deliver: bool = setting(
        True, "push deliveries from this node; false: leave that to other nodes"
    )
    concurrency: int = setting(200, "maximum number of concurrent pushes of this node", 1, 10_000)
    lease_ms: int = setting(
        MINUTE,
        "time after which deliveries in flight on a killed node are pushed again",
        SECOND,
        HOUR,
    )
    retry_ms: int = setting(
        10 * SECOND, "delay after a failure if the route has no retryIntervals", 1, DAY
    )
    honour_retry_after: bool = setting(
        False, "extend the delay after a failure to its Retry-After header"
    )
    max_retry_after_ms: int = setting(HOUR, "longest Retry-After that is honoured", 0, DAY)
    scan_ms: int = setting(
        5 * SECOND, "interval between searches for deliveries without a hint", 100, HOUR
    )
    keep_alive_ms: int = setting(
        1_500, "how long an idle connection to an endpoint is kept open", 1, HOUR
    )  # less than gunicorn's 2 s, the shortest among common servers
    deny: str | None = setting(
        None,
        "comma-separated networks that deliveries never reach; link-local and "
        "metadata addresses are always denied",
    )

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
