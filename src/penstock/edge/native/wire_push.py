"""The JSON of deliveries, routes and circuits, in and out."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from penstock.domain.circuit.circuit import (
    CircuitState,
    Outcome,
    Permit,
    Permitted,
    Reported,
    circuit_hash,
)
from penstock.domain.circuit.overrides import BreakerOverrides
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.delivery.delivery import METHODS, OF_THE_CONNECTION, Delivery, Header, short_id
from penstock.domain.delivery.route import Route
from penstock.domain.errors import InvalidRequest
from penstock.edge.instants import to_text
from penstock.operations.json_text import text_of
from penstock.ports.store import Sent
from penstock.services.circuits.circuits import CircuitView
from penstock.services.circuits.settings import SettingsView

MAX_HEADERS = 100
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]{0,8192}")
_URI = re.compile(r"/[\x21-\x7e]{0,8191}")
_OBJECT = {"type": "object"}
_JSON = ("content-type", "application/json")


class DeliveryIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    queue: str
    uri: str
    method: str = "POST"
    headers: dict[str, str] = {}
    body: msgspec.Raw | UnsetType = UNSET
    payload: str | None = None
    request_id: str | None = None
    dedup_key: str | None = None
    expires_in_ms: int | None = None

    def delivery(self, *, now: int) -> Delivery:
        """Raises InvalidRequest."""
        if self.method not in METHODS:
            raise InvalidRequest(
                f"method {self.method[:20]!r} cannot be queued; use one of {', '.join(METHODS)}"
            )
        if not _URI.fullmatch(self.uri):
            raise InvalidRequest("uri is a path that begins with /, and maybe a query, as in HTTP")
        payload, headers = self._payload(), self._headers()
        if self.body is not UNSET and not any(name.lower() == _JSON[0] for name, _ in headers):
            headers = (*headers, _JSON)
        return Delivery(
            method=self.method,
            uri=self.uri,
            headers=headers,
            payload=payload,
            queued_at=now,
            unique_id=short_id(self.request_id) if self.request_id else None,
        )

    def _payload(self) -> bytes | None:
        if self.body is not UNSET:
            if self.payload is not None:
                raise InvalidRequest("give body or payload, not both")
            return text_of(self.body).encode()
        try:
            return base64.b64decode(self.payload, validate=True) if self.payload else None
        except (binascii.Error, ValueError):
            raise InvalidRequest("payload is base64") from None

    def _headers(self) -> tuple[Header, ...]:
        if len(self.headers) > MAX_HEADERS:
            raise InvalidRequest(f"a delivery has at most {MAX_HEADERS} headers")
        for name, text in self.headers.items():
            if not _NAME.fullmatch(name) or not _VALUE.fullmatch(text):
                raise InvalidRequest(f"{name[:40]!r} is no header that HTTP could carry")
            if name.lower() in OF_THE_CONNECTION:
                raise InvalidRequest(
                    f"the header {name} belongs to a connection, not to a delivery"
                )
        return tuple(self.headers.items())


class AcceptedOut(msgspec.Struct):
    id: str
    queue: str
    route: str
    is_duplicate: bool = False


class RulesIn(msgspec.Struct, forbid_unknown_fields=True):
    rules: Annotated[msgspec.Raw, Meta(extra_json_schema=_OBJECT)]


class RouteOut(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A route; what it does not have is left out, and its secrets and headers' values are, too."""

    pattern: str
    url: str
    circuit: str
    timeout_ms: int
    methods: tuple[str, ...] = ()
    header_names: tuple[str, ...] = ()
    concurrency: int | None = None
    retry_intervals_ms: tuple[int, ...] = ()
    is_signed: bool = False
    metric_name: str | None = None
    description: str | None = None


class RoutesOut(msgspec.Struct):
    routes: list[RouteOut]


class MatchOut(msgspec.Struct):
    route: RouteOut
    target: str


class CircuitOut(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A circuit; what it does not have is left out."""

    hash: str
    pattern: str
    state: CircuitState
    fail_ratio: int
    held: int
    is_forced: bool
    reopened: int
    awaiting_unhold: int = 0
    opened_at: str | None = None
    metric_name: str | None = None
    held_queues: list[str] | None = None


class MinuteOut(msgspec.Struct):
    at: str
    successes: int
    failures: int
    fail_ratio: int


class MinutesOut(msgspec.Struct):
    minutes: list[MinuteOut]


class CircuitsOut(msgspec.Struct):
    circuits: list[CircuitOut]
    held: int
    awaiting_unhold: int


class CircuitSettingsOut(msgspec.Struct):
    circuit: str
    route: str
    overrides: BreakerOverrides
    settings: BreakerSettings


class CircuitSettingsListOut(msgspec.Struct):
    circuits: list[CircuitSettingsOut]


class UnheldOut(msgspec.Struct):
    unheld: int


class ClosedOut(msgspec.Struct):
    closed: int


class RouteNamesIn(msgspec.Struct, forbid_unknown_fields=True):
    routes: list[str]
    ids: list[str] = []


class RoutePermitOut(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Whether jobs of a route may be run now."""

    route: str
    permit: Permit
    generation: int
    wait_ms: int = 0
    retry_ms: int = 0


class RoutePermitsOut(msgspec.Struct):
    is_watching: bool
    permits: list[RoutePermitOut]


class JobOutcomeIn(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    route: str
    id: str
    outcome: Literal["success", "failure"] | None
    permit: Permit = Permit.GO
    generation: int = -1
    took_ms: int = 0

    @property
    def reported(self) -> Reported:
        permitted = Permitted(
            permit=self.permit,
            pattern=self.route,
            hash=circuit_hash(self.route),
            generation=self.generation,
            is_of_table=False,
        )
        outcome = None if self.outcome is None else Outcome(self.outcome)
        return Reported(permitted, self.id, outcome, self.took_ms)


class JobOutcomesIn(msgspec.Struct, forbid_unknown_fields=True):
    outcomes: list[JobOutcomeIn]


def permit_out(permitted: Permitted) -> RoutePermitOut:
    return RoutePermitOut(
        route=permitted.pattern,
        permit=permitted.permit,
        generation=permitted.generation,
        wait_ms=permitted.wait_ms,
        retry_ms=permitted.retry_ms,
    )


def accepted_out(sent: Sent, queue: str, route: Route) -> AcceptedOut:
    return AcceptedOut(sent.id, queue, route.pattern, sent.is_duplicate)


def route_out(route: Route) -> RouteOut:
    return RouteOut(
        pattern=route.pattern,
        url=route.url,
        circuit=route.hash,
        timeout_ms=route.timeout_ms,
        methods=tuple(sorted(route.methods)),
        header_names=tuple(rule.name for rule in route.headers),
        concurrency=route.concurrency,
        retry_intervals_ms=tuple(route.retry_intervals_ms),
        is_signed=bool(route.signing_secrets),
        metric_name=route.metric_name,
        description=route.description,
    )


def circuit_out(view: CircuitView) -> CircuitOut:
    circuit = view.circuit
    return CircuitOut(
        hash=view.hash,
        pattern=circuit.pattern,
        state=circuit.state,
        fail_ratio=circuit.fail_ratio,
        held=view.held,
        is_forced=circuit.is_forced,
        reopened=circuit.reopened,
        awaiting_unhold=view.awaiting_unhold,
        opened_at=None if circuit.opened_at is None else to_text(circuit.opened_at),
        metric_name=view.metric_name,
    )


def circuit_settings_out(view: SettingsView) -> CircuitSettingsOut:
    return CircuitSettingsOut(view.circuit, view.route, view.overrides, view.settings)


def rules_text(given: RulesIn) -> str:
    """The rules as they were written; raises InvalidRequest."""
    return text_of(given.rules)
