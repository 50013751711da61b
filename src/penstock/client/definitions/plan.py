"""What must change on a broker so that it has what a file defines.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from penstock.api.topics import Subscribe
from penstock.client.definitions.document import Definitions, plain


class Action(StrEnum):
    CREATE = "create"
    CHANGE = "change"
    REMOVE = "remove"


class Kind(StrEnum):
    """In the order of creation; removals go the other way."""

    QUEUE = "queue"
    TOPIC = "topic"
    SUBSCRIPTION = "subscription"
    ROUTES = "routes"
    BREAKER = "breaker"
    CIRCUIT = "circuit"
    FLEET = "fleet"
    RECURRING = "recurring"


_ORDER = list(Kind)


class PlannedChange(msgspec.Struct, frozen=True):
    action: Action
    kind: Kind
    name: str
    before: dict[str, Any] = {}  # of the fields that change
    after: dict[str, Any] = {}


class Plan(msgspec.Struct, frozen=True):
    changes: list[PlannedChange]
    extra: list[
        PlannedChange
    ]  # removals that were not asked for: they exist, and no section has them
    unchanged: int


def plan(present: Definitions, wanted: Definitions, *, prune: bool) -> Plan:
    """`prune`: also remove what the sections of the file do not have."""
    changes: list[PlannedChange] = []
    extra: list[PlannedChange] = []
    unchanged = 0
    for kind, before, after in _sections(present, wanted):
        for name, record in after.items():
            change = _difference(kind, name, before.get(name), record)
            if change is None:
                unchanged += 1
            else:
                changes.append(change)
        gone = [PlannedChange(Action.REMOVE, kind, name) for name in before if name not in after]
        (changes if prune else extra).extend(gone)
    changes.sort(key=_place)
    return Plan(changes, extra, unchanged)


def _place(change: PlannedChange) -> int:
    place = _ORDER.index(change.kind)
    return 2 * len(_ORDER) - place if change.action is Action.REMOVE else place


_Record = dict[str, Any]
_Records = Mapping[str, Any]


def _sections(
    present: Definitions, wanted: Definitions
) -> Iterator[tuple[Kind, _Records, _Records]]:
    pairs = [
        (Kind.QUEUE, present.queues, wanted.queues),
        (Kind.TOPIC, _topics(present), _topics(wanted)),
        (Kind.SUBSCRIPTION, _subscriptions(present), _subscriptions(wanted)),
        (Kind.ROUTES, _alone(present.routes), _alone(wanted.routes)),
        (Kind.BREAKER, _alone(present.breaker), _alone(wanted.breaker)),
        (Kind.CIRCUIT, present.circuits, wanted.circuits),
        (Kind.FLEET, present.fleets, wanted.fleets),
        (Kind.RECURRING, present.recurring, wanted.recurring),
    ]
    for kind, before, after in pairs:
        if not isinstance(after, UnsetType):
            yield kind, {} if isinstance(before, UnsetType) else before, after


def _topics(definitions: Definitions) -> dict[str, Any] | UnsetType:
    if isinstance(definitions.topics, UnsetType):
        return UNSET
    return {topic: {} for topic in definitions.topics}


def _subscriptions(definitions: Definitions) -> dict[str, Subscribe] | UnsetType:
    if isinstance(definitions.topics, UnsetType):
        return UNSET
    return {
        f"{topic}/{name}": one
        for topic, subscriptions in definitions.topics.items()
        for name, one in subscriptions.items()
    }


def _alone(section: Any) -> Any:
    """A section that is one document, which exists always."""
    return UNSET if section is UNSET else {"": section}


def _difference(kind: Kind, name: str, before: Any, after: Any) -> PlannedChange | None:
    if kind is Kind.ROUTES:
        return (
            None
            if before == after
            else PlannedChange(Action.CHANGE, kind, name, *_patterns(before, after))
        )
    new = _fields(after)
    if before is None:
        return PlannedChange(Action.CREATE, kind, name, after=new)
    old = _fields(before)
    if kind is Kind.SUBSCRIPTION and "settings" not in new:
        old.pop("settings", None)  # without settings its queue keeps those that it has
    changed = [field for field in old | new if old.get(field) != new.get(field)]
    if not changed:
        return None
    return PlannedChange(
        Action.CHANGE,
        kind,
        name,
        before={field: old.get(field, _default(after, field)) for field in changed},
        after={field: new.get(field, _default(after, field)) for field in changed},
    )


def _fields(record: Any) -> dict[str, Any]:
    return plain(record) if isinstance(record, msgspec.Struct) else dict(record)


def _patterns(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[_Record, _Record]:
    return {"patterns": list(before)}, {"patterns": list(after)}


def _default(record: Any, name: str) -> Any:
    """The value of a field that is left out, as the HTTP API writes it."""
    if not isinstance(record, msgspec.Struct):
        return None
    for field in msgspec.structs.fields(record):
        if field.name == name and field.default not in (msgspec.NODEFAULT, UNSET):
            return msgspec.to_builtins(field.default)
    return None
