"""Facts: what happened to workers, circuits and other things that are not messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Self

import msgspec

from penstock.api.operation import (
    AnswerRecord,
    Cursor,
    Instant,
    InstantIn,
    Limit,
    Next,
    Operation,
    QueryRecord,
    about,
)
from penstock.domain import fact as domain
from penstock.domain.access.api_key import Role, Scope


class Fact(AnswerRecord, frozen=True):
    at: Annotated[Instant, about("When it happened.")]
    kind: Annotated[str, about("What happened, such as `worker_lost`.")]
    subject: Annotated[str, about("What it happened to: an id or a name.")]
    data: Annotated[dict[str, Any], about("Details.")]

    @classmethod
    def of(cls, fact: domain.Fact, instant: Callable[[int], Instant]) -> Self:
        return cls(
            at=instant(fact.at),
            kind=fact.kind,
            subject=fact.subject,
            data=msgspec.json.decode(fact.data),
        )


class Facts(AnswerRecord, frozen=True):
    facts: Annotated[list[Fact], about("The facts, newest first.")]
    next: Next


class SearchFacts(QueryRecord):
    kind: Annotated[str | None, about("Only facts of this kind.")] = None
    subject: Annotated[str | None, about("Only facts about this id or name.")] = None
    from_: Annotated[InstantIn | None, about("Only facts recorded at this instant or later.")] = (
        msgspec.field(default=None, name="from")
    )
    to: Annotated[InstantIn | None, about("Only facts recorded before this instant.")] = None
    limit: Limit = 100
    cursor: Cursor = None


SEARCH = Operation(
    name="searchFacts",
    method="GET",
    path="/v1/facts",
    summary="Search facts about workers, circuits and other things than messages, newest first.",
    role=Role.READ,
    scope=Scope.ALL,
    query=SearchFacts,
    answer=Facts,
)
