"""What can be set about pushing deliveries, and about the faces that take and steer them."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.domain.delivery.addresses import networks
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, HOUR, MINUTE, SECOND

_PATH = re.compile(r"(/[A-Za-z0-9_.~-]+)+/?")
_OURS = ("v1", "docs", "healthz", "readyz", "metrics")


class Push(msgspec.Struct, frozen=True, kw_only=True):
    enabled: Annotated[
        bool, Meta(description="take requests for pushing, and serve gateleen's resources")
    ] = True
    path: Annotated[
        str, Meta(description="requests under this path are queued, and pushed later")
    ] = "/push"
    rules_path: Annotated[str, Meta(description="resource of the routing rules")] = (
        "/admin/v1/routing/rules"
    )
    breaker_path: Annotated[str, Meta(description="resource of the breaker's configuration")] = (
        "/admin/v1/circuitbreaker"
    )
    logging_path: Annotated[str, Meta(description="resource that says which payloads to log")] = (
        "/admin/v1/logging"
    )
    circuits_path: Annotated[str, Meta(description="prefix of gateleen's circuit API")] = (
        "/queuecircuitbreaker/circuit/"
    )
    log_changes: Annotated[
        bool, Meta(description="log payloads of changes, of those that the logging resource names")
    ] = False
    deliver: Annotated[
        bool, Meta(description="this node pushes what waits; false: it leaves that to others")
    ] = True
    concurrency: Annotated[
        int, Meta(ge=1, le=10_000, description="requests that this node has under way at one time")
    ] = 200
    lease_ms: Annotated[
        int,
        Meta(
            ge=SECOND,
            le=HOUR,
            description="after so long what a killed node had under way is pushed again",
        ),
    ] = MINUTE
    retry_ms: Annotated[
        int,
        Meta(ge=1, le=DAY, description="wait after a failure, if the route has no retryIntervals"),
    ] = 10 * SECOND
    honour_retry_after: Annotated[
        bool, Meta(description="wait longer where a failure's Retry-After says so")
    ] = False
    max_retry_after_ms: Annotated[
        int, Meta(ge=0, le=DAY, description="… but no longer than this")
    ] = HOUR
    scan_ms: Annotated[
        int, Meta(ge=100, le=HOUR, description="how often deliveries are looked for without a hint")
    ] = 5 * SECOND
    keep_alive_ms: Annotated[
        int, Meta(ge=1, le=HOUR, description="how long an idle connection to a backend is kept")
    ] = 1_500  # less than the 2 s of gunicorn, the shortest of the usual servers
    deny: Annotated[
        str | None,
        Meta(
            description="networks that nothing is pushed to, with commas between; link-local and "
            "metadata addresses are among them always"
        ),
    ] = None

    @property
    def paths(self) -> dict[str, str]:
        """By setting, as they are served: without a slash at the end."""
        names = ("path", "rules_path", "breaker_path", "logging_path", "circuits_path")
        return {name: getattr(self, name).rstrip("/") for name in names}


def check_push(push: Push) -> None:
    """Raises InvalidRequest."""
    _check_networks(push.deny or "")
    taken: dict[str, str] = {}
    for name, path in push.paths.items():
        if not _PATH.fullmatch(getattr(push, name)):
            raise InvalidRequest(f"push.{name} is a path like /admin/v1/rules")
        if path.split("/")[1] in _OURS:
            raise InvalidRequest(f"push.{name} must not begin with /{path.split('/')[1]}")
        for other, place in taken.items():
            if f"{path}/".startswith(f"{place}/") or f"{place}/".startswith(f"{path}/"):
                raise InvalidRequest(f"push.{name} and push.{other} must not lie in one another")
        taken[name] = path


def _check_networks(text: str) -> None:
    for part in filter(None, map(str.strip, text.split(","))):
        try:
            networks(part)
        except ValueError:
            raise InvalidRequest(
                f"push.deny has networks like 10.0.0.0/8, not {part[:60]!r}"
            ) from None
