"""Routes: where deliveries go."""

from __future__ import annotations

from typing import Annotated, Self

import msgspec
from msgspec import Meta

from penstock.api.operation import (
    AnswerRecord,
    DurationMs,
    Operation,
    QueryRecord,
    RequestRecord,
    about,
)
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.delivery import route as domain
from penstock.domain.errors import InvalidUri, RouteNotFound


class Rules(RequestRecord):
    rules: Annotated[
        msgspec.Raw,
        Meta(
            description="An object of patterns and rules, in gateleen's form.",
            extra_json_schema={"type": "object"},
        ),
    ]


class Route(AnswerRecord, frozen=True, omit_defaults=True):
    """A route; absent: fields without a value, secrets and header values."""

    pattern: Annotated[str, about("A regular expression that the whole URI must match.")]
    url: Annotated[
        str, about("The URL of its deliveries; $1, $2 and so on stand for groups of the pattern.")
    ]
    circuit: Annotated[str, about("The hash of its circuit.")]
    timeout_ms: Annotated[DurationMs, about("How long the endpoint may take to respond.")]
    methods: Annotated[
        tuple[str, ...], about("The methods that it accepts. Empty: all methods.")
    ] = ()
    header_names: Annotated[tuple[str, ...], about("The headers that it adds.")] = ()
    concurrency: Annotated[
        int | None, about("The maximum number of concurrent deliveries. Null: no limit.")
    ] = None
    retry_intervals_ms: Annotated[
        tuple[int, ...], about("The wait after the first failure, the second, and so on.")
    ] = ()
    is_signed: Annotated[bool, about("True if its deliveries are signed.")] = False
    metric_name: Annotated[str | None, about("Its name in metrics.")] = None
    description: Annotated[str | None, about("What it is for.")] = None

    @classmethod
    def of(cls, route: domain.DeliveryRoute) -> Self:
        return cls(
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


class Routes(AnswerRecord, frozen=True):
    routes: Annotated[list[Route], about("The routes, in order.")]

    @classmethod
    def of(cls, table: domain.RouteTable) -> Self:
        return cls(routes=[Route.of(route) for route in table.routes])


class Match(AnswerRecord, frozen=True):
    route: Annotated[Route, about("The route.")]
    target: Annotated[str, about("The URL that the delivery would go to.")]


class MatchedUri(QueryRecord):
    uri: Annotated[
        str, Meta(description="Path and query of a delivery.", examples=["/shop/orders/17"])
    ]


LIST = Operation(
    name="listRoutes",
    method="GET",
    path="/v1/routes",
    summary="List routes in their order. The first route that matches a delivery takes it.",
    role=Role.READ,
    scope=Scope.ALL,
    answer=Routes,
)
PUT = Operation(
    name="putRoutes",
    method="PUT",
    path="/v1/routes",
    summary="Replace all routes. If one is invalid, none changes.",
    role=Role.OPERATE,
    scope=Scope.ALL,
    request=Rules,
    example={"rules": {"/shop/(.*)": {"url": "http://localhost:8080/$1", "timeout": 30}}},
    answer=Routes,
    is_idempotent=True,
)
MATCH = Operation(
    name="matchRoute",
    method="GET",
    path="/v1/routes/match",
    summary="Find the route that a delivery would take, and its target URL.",
    role=Role.READ,
    scope=Scope.ALL,
    query=MatchedUri,
    answer=Match,
    errors=(RouteNotFound, InvalidUri),
)
