"""Circuits: whether requests of a route may be sent."""

from __future__ import annotations

from typing import Annotated

from penstock.api.operation import AnswerRecord, Instant, Operation, QueryRecord, about
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.circuit.circuit import CircuitState
from penstock.domain.errors import CircuitNotFound


class Circuit(AnswerRecord, frozen=True, omit_defaults=True):
    """A circuit; fields without a value are absent."""

    hash: Annotated[str, about("The circuit's id: the Murmur3-128 of its pattern.")]
    pattern: Annotated[str, about("The pattern of its route, or the route named by its jobs.")]
    state: Annotated[CircuitState, about("Closed, open or half-open.")]
    fail_ratio: Annotated[int, about("The percentage of failures among its samples.")]
    held: Annotated[int, about("How many queues it holds, including those awaiting unhold.")]
    is_forced: Annotated[bool, about("True if an operator opened it.")]
    reopened: Annotated[int, about("How many consecutive probes have failed.")]
    awaiting_unhold: Annotated[
        int,
        about(
            "How many of the held queues are about to be released because their circuit has closed."
        ),
    ] = 0
    opened_at: Annotated[
        Instant | None, about("When it was last opened, while it is open or half-open.")
    ] = None
    metric_name: Annotated[str | None, about("Its name in metrics.")] = None
    held_queues: Annotated[
        list[str] | None, about("The names of the held queues. Absent in lists.")
    ] = None


class Circuits(AnswerRecord, frozen=True):
    circuits: Annotated[list[Circuit], about("The circuits, by pattern.")]
    held: Annotated[int, about("How many queues are held by all circuits, including removed ones.")]
    awaiting_unhold: Annotated[
        int,
        about(
            "How many of the held queues are about to be released because their circuit has closed."
        ),
    ]


class CircuitsOfRoute(QueryRecord):
    route: Annotated[
        str | None, about("Only the circuit of this route, even if it has not been used yet.")
    ] = None


class Minute(AnswerRecord, frozen=True):
    at: Annotated[Instant, about("The start of the minute.")]
    successes: Annotated[int, about("How many requests succeeded.")]
    failures: Annotated[int, about("How many requests failed.")]
    fail_ratio: Annotated[int, about("The percentage of failures.")]


class Minutes(AnswerRecord, frozen=True):
    minutes: Annotated[list[Minute], about("Minutes that have samples, oldest first.")]


class Closed(AnswerRecord, frozen=True):
    closed: Annotated[int, about("How many circuits were closed.")]


class Unheld(AnswerRecord, frozen=True):
    unheld: Annotated[int, about("How many held queues were released.")]


LIST = Operation(
    name="listCircuits",
    method="GET",
    path="/v1/circuits",
    summary="List circuits with their state, or only the circuit of one route.",
    role=Role.READ,
    scope=Scope.FILTERED,
    query=CircuitsOfRoute,
    answer=Circuits,
)
GET = Operation(
    name="getCircuit",
    method="GET",
    path="/v1/circuits/{circuit}",
    summary="Retrieve a circuit.",
    role=Role.READ,
    scope=Scope.NAMED,
    answer=Circuit,
    errors=(CircuitNotFound,),
)
SAMPLES = Operation(
    name="getCircuitSamples",
    method="GET",
    path="/v1/circuits/{circuit}/samples",
    summary="Retrieve recent outcomes of a circuit, minute by minute.",
    role=Role.READ,
    scope=Scope.NAMED,
    answer=Minutes,
    errors=(CircuitNotFound,),
)
CLOSE_ALL = Operation(
    name="closeCircuits",
    method="POST",
    path="/v1/circuits/close",
    summary="Close all circuits that are open or half-open.",
    role=Role.OPERATE,
    scope=Scope.ALL,
    answer=Closed,
    is_idempotent=True,
)
CLOSE = Operation(
    name="closeCircuit",
    method="POST",
    path="/v1/circuits/{circuit}/close",
    summary="Close a circuit and clear its outcomes. Its queues are released step by step.",
    role=Role.OPERATE,
    scope=Scope.ALL,
    answer=Circuit,
    errors=(CircuitNotFound,),
    is_idempotent=True,
)
UNHOLD_ALL = Operation(
    name="unholdQueues",
    method="POST",
    path="/v1/circuits/unhold",
    summary="Release all queues that circuits hold, at once.",
    role=Role.OPERATE,
    scope=Scope.ALL,
    answer=Unheld,
    is_idempotent=True,
)
UNHOLD = Operation(
    name="unholdCircuit",
    method="POST",
    path="/v1/circuits/{circuit}/unhold",
    summary="Release all queues that a circuit holds, at once; its state stays.",
    role=Role.OPERATE,
    scope=Scope.ALL,
    answer=Unheld,
    errors=(CircuitNotFound,),
    is_idempotent=True,
)
OPEN = Operation(
    name="openCircuit",
    method="POST",
    path="/v1/circuits/{circuit}/open",
    summary="Open a circuit. It stays open until an operator closes it.",
    role=Role.OPERATE,
    scope=Scope.ALL,
    answer=Circuit,
    errors=(CircuitNotFound,),
    is_idempotent=True,
)
