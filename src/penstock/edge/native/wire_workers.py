"""Workers and facts in the JSON of the native API."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.domain.fact import Fact
from penstock.edge.instants import to_text


class FactOut(msgspec.Struct):
    at: str
    kind: str
    subject: str
    data: dict[str, Any]


class FactsOut(msgspec.Struct):
    facts: list[FactOut]
    next: str | None


def fact_out(fact: Fact) -> FactOut:
    return FactOut(to_text(fact.at), fact.kind, fact.subject, msgspec.json.decode(fact.data))
