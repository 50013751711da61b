"""Health checks for orchestrators: whether a node runs and accepts work."""

from __future__ import annotations

from typing import Annotated

from penstock.api.operation import AnswerRecord, Operation, about
from penstock.domain.errors import StoreUnavailable


class Part(AnswerRecord, frozen=True):
    """A part of the node that does not work."""

    name: Annotated[str, about("The part's name.")]
    state: Annotated[
        str,
        about(
            "failed: it raised an error and is being restarted; stuck: it has work and does not "
            "finish any of it."
        ),
    ]
    message: Annotated[str, about("What went wrong, in plain English.")]


class Health(AnswerRecord, frozen=True, omit_defaults=True):
    status: Annotated[str, about("ok or failing.")]
    version: Annotated[str, about("The version of this server.")]
    parts: Annotated[
        tuple[Part, ...],
        about("Parts of the process that do not work. Absent if all of them work."),
    ] = ()


class Readiness(AnswerRecord, frozen=True, omit_defaults=True):
    status: Annotated[str, about("ready or degraded.")]
    reason: Annotated[str | None, about("Why it is degraded.")] = None


ALIVE = Operation(
    name="isAlive",
    method="GET",
    path="/healthz",
    summary="Check that every part of the process works. Returns 503 with the parts that do not.",
    role=None,
    answer=Health,
)
READY = Operation(
    name="isReady",
    method="GET",
    path="/readyz",
    summary="Check that the store accepts writes.",
    role=None,
    answer=Readiness,
    errors=(StoreUnavailable,),
)
