"""The settings of the circuit breaker, for all circuits and for single ones."""

from __future__ import annotations

from typing import Annotated

from penstock.api.operation import AnswerRecord, Operation, QueryRecord, about
from penstock.domain.access.api_key import Role, Scope
from penstock.domain.circuit.overrides import BreakerOverrides
from penstock.domain.circuit.settings import BreakerSettings
from penstock.domain.errors import CircuitNotFound


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


GET_BREAKER = Operation(
    name="getBreaker",
    method="GET",
    path="/v1/breaker",
    summary="Retrieve the settings of the circuit breaker.",
    role=Role.READ,
    scope=Scope.ALL,
    answer=BreakerSettings,
)
CHANGE_BREAKER = Operation(
    name="changeBreaker",
    method="PATCH",
    path="/v1/breaker",
    summary="Update some settings of the circuit breaker; the others keep their values.",
    role=Role.OPERATE,
    scope=Scope.ALL,
    request=BreakerSettings,
    is_partial=True,
    example={"error_threshold_percentage": 80, "single_probe": True},
    answer=BreakerSettings,
    is_idempotent=True,
)
RESET_BREAKER = Operation(
    name="resetBreaker",
    method="DELETE",
    path="/v1/breaker",
    summary="Reset all settings of the circuit breaker to their defaults.",
    role=Role.OPERATE,
    scope=Scope.ALL,
    answer=BreakerSettings,
    is_idempotent=True,
)

LIST = Operation(
    name="listCircuitSettings",
    method="GET",
    path="/v1/circuits/settings",
    summary="List the circuits that override settings of the breaker.",
    role=Role.READ,
    scope=Scope.ALL,
    answer=CircuitSettingsList,
)
GET = Operation(
    name="getCircuitSettings",
    method="GET",
    path="/v1/circuits/{circuit}/settings",
    summary="Retrieve the settings of a circuit: its overrides and the values in force.",
    role=Role.READ,
    scope=Scope.ALL,
    query=CircuitRoute,
    answer=CircuitSettings,
    errors=(CircuitNotFound,),
)
PUT = Operation(
    name="putCircuitSettings",
    method="PUT",
    path="/v1/circuits/{circuit}/settings",
    summary="Replace the overrides of a circuit.",
    role=Role.OPERATE,
    scope=Scope.ALL,
    request=BreakerOverrides,
    is_partial=True,
    example={"error_threshold_percentage": 50, "min_queue_sample_count": 20},
    query=CircuitRoute,
    answer=CircuitSettings,
    errors=(CircuitNotFound,),
    is_idempotent=True,
)
CHANGE = Operation(
    name="changeCircuitSettings",
    method="PATCH",
    path="/v1/circuits/{circuit}/settings",
    summary="Update some overrides of a circuit; the others keep their values.",
    role=Role.OPERATE,
    scope=Scope.ALL,
    request=BreakerOverrides,
    is_partial=True,
    example={"entries_max_age_ms": 300_000},
    query=CircuitRoute,
    answer=CircuitSettings,
    errors=(CircuitNotFound,),
    is_idempotent=True,
)
RESET = Operation(
    name="resetCircuitSettings",
    method="DELETE",
    path="/v1/circuits/{circuit}/settings",
    summary="Delete all overrides of a circuit.",
    role=Role.OPERATE,
    scope=Scope.ALL,
    query=CircuitRoute,
    answer=CircuitSettings,
    errors=(CircuitNotFound,),
    is_idempotent=True,
)
