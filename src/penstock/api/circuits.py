"""Circuits: whether requests of a route may be sent, and the settings of the breaker."""

from __future__ import annotations

from typing import Annotated

from penstock.api.operation import (
    AnswerRecord,
    Instant,
    QueryRecord,
    about,
    everywhere,
    filtered,
    named,
)
from penstock.domain.circuit.circuit import CircuitState
from penstock.domain.circuit.overrides import BreakerOverrides
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.errors import CircuitNotFound


class Circuit(AnswerRecord, frozen=True, omit_defaults=True):
    """A circuit; fields without a value are absent."""

    hash: Annotated[str, about("The circuit's id: the Murmur3-128 of its pattern.")]
    pattern: Annotated[str, about("The pattern of its route, or the route named by its jobs.")]
    state: Annotated[CircuitState, about("Closed, open or half-open.")]
    fail_ratio: Annotated[int, about("The percentage of failures among its outcomes.")]
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
    minutes: Annotated[list[Minute], about("Minutes that have outcomes, oldest first.")]


class Closed(AnswerRecord, frozen=True):
    closed: Annotated[int, about("How many circuits were closed.")]


class Unheld(AnswerRecord, frozen=True):
    unheld: Annotated[int, about("How many held queues were released.")]


class CircuitSettings(AnswerRecord, frozen=True):
    circuit: Annotated[str, about("The hash of its circuit.")]
    route: Annotated[str, about("The pattern of its route, or the route named by its jobs.")]
    overrides: Annotated[
        BreakerOverrides,
        about("The settings that it overrides. Omitted settings are those of the breaker."),
    ]
    settings: Annotated[BreakerSettings, about("The settings in force for it.")]


class CircuitSettingsList(AnswerRecord, frozen=True):
    circuits: Annotated[
        list[CircuitSettings], about("The circuits that override a setting, by route.")
    ]


class CircuitRoute(QueryRecord):
    route: Annotated[
        str | None, about("The route of the circuit. Required if it has not been used yet.")
    ] = None


LIST = filtered.get(
    "listCircuits",
    "/v1/circuits",
    "List circuits with their state, or only the circuit of one route.",
    Circuits,
    query=CircuitsOfRoute,
)
GET = named.get("getCircuit", "/v1/circuits/{circuit}", "Retrieve a circuit.", Circuit)
SAMPLES = named.get(
    "getCircuitSamples",
    "/v1/circuits/{circuit}/samples",
    "Retrieve recent outcomes of a circuit, minute by minute.",
    Minutes,
)
CLOSE_ALL = everywhere.post(
    "closeCircuits",
    "/v1/circuits/close",
    "Close all circuits that are open or half-open.",
    Closed,
    is_idempotent=True,
)
CLOSE = everywhere.post(
    "closeCircuit",
    "/v1/circuits/{circuit}/close",
    "Close a circuit and clear its outcomes. Its queues are released step by step.",
    Circuit,
    is_idempotent=True,
)
UNHOLD_ALL = everywhere.post(
    "unholdQueues",
    "/v1/circuits/unhold",
    "Release all queues that circuits hold, at once.",
    Unheld,
    is_idempotent=True,
)
UNHOLD = everywhere.post(
    "unholdCircuit",
    "/v1/circuits/{circuit}/unhold",
    "Release all queues that a circuit holds, at once; its state stays.",
    Unheld,
    is_idempotent=True,
)
OPEN = everywhere.post(
    "openCircuit",
    "/v1/circuits/{circuit}/open",
    "Open a circuit. It stays open until an operator closes it.",
    Circuit,
    is_idempotent=True,
)

GET_BREAKER = everywhere.get(
    "getBreaker",
    "/v1/breaker",
    "Retrieve the settings of the circuit breaker.",
    BreakerSettings,
)
CHANGE_BREAKER = everywhere.patch(
    "changeBreaker",
    "/v1/breaker",
    "Update some settings of the circuit breaker; the others keep their values.",
    BreakerSettings,
    request=BreakerSettings,
    is_partial=True,
    example={"error_threshold_percentage": 80, "single_probe": True},
)
RESET_BREAKER = everywhere.delete(
    "resetBreaker",
    "/v1/breaker",
    "Reset all settings of the circuit breaker to their defaults.",
    BreakerSettings,
    is_idempotent=True,
)

LIST_SETTINGS = everywhere.get(
    "listCircuitSettings",
    "/v1/circuits/settings",
    "List the circuits that override settings of the breaker.",
    CircuitSettingsList,
)
GET_SETTINGS = everywhere.get(
    "getCircuitSettings",
    "/v1/circuits/{circuit}/settings",
    "Retrieve the settings of a circuit: its overrides and the values in force.",
    CircuitSettings,
    query=CircuitRoute,
)
PUT_SETTINGS = everywhere.put(
    "putCircuitSettings",
    "/v1/circuits/{circuit}/settings",
    "Replace the overrides of a circuit.",
    CircuitSettings,
    request=BreakerOverrides,
    is_partial=True,
    example={"error_threshold_percentage": 50, "min_queue_sample_count": 20},
    query=CircuitRoute,
    errors=(CircuitNotFound,),
)
CHANGE_SETTINGS = everywhere.patch(
    "changeCircuitSettings",
    "/v1/circuits/{circuit}/settings",
    "Update some overrides of a circuit; the others keep their values.",
    CircuitSettings,
    request=BreakerOverrides,
    is_partial=True,
    example={"entries_max_age_ms": 300_000},
    query=CircuitRoute,
)
RESET_SETTINGS = everywhere.delete(
    "resetCircuitSettings",
    "/v1/circuits/{circuit}/settings",
    "Delete all overrides of a circuit.",
    CircuitSettings,
    query=CircuitRoute,
    is_idempotent=True,
)
