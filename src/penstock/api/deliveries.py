"""Deliveries, HTTP requests that are stored now and pushed later, and the routes they take."""

from __future__ import annotations

from typing import Annotated, Self

import msgspec
from msgspec import UNSET, Meta, UnsetType

from penstock.api.operation import (
    AnswerRecord,
    DurationMs,
    Id,
    QueryRecord,
    RequestRecord,
    about,
    everywhere,
    named,
)
from penstock.domain.access.api_key import Role
from penstock.domain.delivery import route as domain
from penstock.domain.errors import InvalidUri, NotForDeliveries, QueueFull, RouteNotFound


class Delivery(RequestRecord, kw_only=True):
    queue: Annotated[str, about("The queue to store it in. Created if it does not exist.")]
    uri: Annotated[
        str, about("The path and query, which are matched against the patterns of the routes.")
    ]
    method: Annotated[str, about("The method of the request.")] = "POST"
    headers: Annotated[dict[str, str], about("The headers of the request, by name.")] = (
        msgspec.field(default_factory=dict)
    )
    body: Annotated[msgspec.Raw | UnsetType, about("The body of the request: any JSON value.")] = (
        UNSET
    )
    payload: Annotated[
        str | None, about("The body of the request in base64, instead of `body`.")
    ] = None
    request_id: Annotated[
        str | None,
        about(
            "The id by which the circuit counts its attempts. Defaults to the id of the message."
        ),
    ] = None
    dedup_key: Annotated[
        str | None, about("A second delivery with this key within the queue's window is dropped.")
    ] = None
    expires_in_ms: Annotated[
        DurationMs | None,
        about("The time after which it is cancelled if it is still waiting. Null: never."),
    ] = None


class Accepted(AnswerRecord, frozen=True):
    id: Annotated[Id, about("The message's id.")]
    queue: Annotated[str, about("The queue in which it waits.")]
    route: Annotated[str, about("The pattern of its route.")]
    is_duplicate: Annotated[
        bool, about("True if a delivery with this dedup key was accepted before.")
    ] = False


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
        return cls.copy_of(
            route,
            circuit=route.hash,
            methods=tuple(sorted(route.methods)),
            header_names=tuple(rule.name for rule in route.headers),
            retry_intervals_ms=tuple(route.retry_intervals_ms),
            is_signed=bool(route.signing_secrets),
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


SEND = named.post(
    "sendDelivery",
    "/v1/deliveries",
    "Store an HTTP request. It is pushed later, in the order of its queue.",
    Accepted,
    role=Role.PRODUCE,
    request=Delivery,
    example={
        "queue": "orders",
        "uri": "/shop/orders/17",
        "method": "PUT",
        "headers": {"x-queue-expire-after": "3600"},
        "body": {"status": "paid"},
    },
    status=202,
    errors=(InvalidUri, RouteNotFound, QueueFull, NotForDeliveries),
)
LIST_ROUTES = everywhere.get(
    "listRoutes",
    "/v1/routes",
    "List routes in their order. The first route that matches a delivery takes it.",
    Routes,
)
PUT_ROUTES = everywhere.put(
    "putRoutes",
    "/v1/routes",
    "Replace all routes. If one is invalid, none changes.",
    Routes,
    request=Rules,
    example={"rules": {"/shop/(.*)": {"url": "http://localhost:8080/$1", "timeout": 30}}},
)
MATCH_ROUTE = everywhere.get(
    "matchRoute",
    "/v1/routes/match",
    "Find the route that a delivery would take, and its target URL.",
    Match,
    query=MatchedUri,
    errors=(RouteNotFound, InvalidUri),
)
