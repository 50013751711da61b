"""Deliveries: HTTP requests that are stored now and pushed later."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from penstock.api.operation import AnswerRecord, DurationMs, Id, Operation, RequestRecord, about
from penstock.domain.access.api_key import Role, Scope
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


SEND = Operation(
    name="sendDelivery",
    method="POST",
    path="/v1/deliveries",
    summary="Store an HTTP request. It is pushed later, in the order of its queue.",
    role=Role.PRODUCE,
    scope=Scope.NAMED,
    request=Delivery,
    example={
        "queue": "orders",
        "uri": "/shop/orders/17",
        "method": "PUT",
        "headers": {"x-queue-expire-after": "3600"},
        "body": {"status": "paid"},
    },
    answer=Accepted,
    status=202,
    errors=(InvalidUri, RouteNotFound, QueueFull, NotForDeliveries),
)
