"""New members of a flow as a caller plans them, checked before they are stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from penstock.domain.errors import InvalidRequest
from penstock.domain.flow import inputs
from penstock.domain.flow.member import MemberRole, RunsOn
from penstock.domain.limits import DAY, MINUTE, Limits, check_range
from penstock.domain.message.draft import Draft, is_label

MAX_ADDED = 10_000  # members in one request
MAX_MEMBERS = 100_000  # of a flow
MAX_EDGES = 200_000  # in one request

MAX_WINDOW_MS = 366 * DAY

Source = str | tuple[str, ...]  # names, or ids of members that exist already


class PlannedMember(msgspec.Struct, frozen=True, kw_only=True):
    queue: str
    draft: Draft
    name: str | None = None
    after: Mapping[str, RunsOn] = {}  # by the name or id of the parent
    inputs: Mapping[str, Source] = {}  # by the field of the body
    role: MemberRole = MemberRole.MEMBER

    @property
    def parents(self) -> Mapping[str, RunsOn]:
        """Also those whose results it takes; they must be done, unless an edge says otherwise."""
        wanted = dict.fromkeys(_names(self.inputs.values()), RunsOn.DONE)
        return wanted | dict(self.after)


class FlowKey(msgspec.Struct, frozen=True):
    """Creating a second flow with the same name and key returns the first.

    The key is taken until the first has ended, and for `window_ms` after its creation.
    """

    dedup_key: str
    window_ms: int = 5 * MINUTE


def check_key(key: FlowKey, limits: Limits) -> FlowKey:
    if not is_label(key.dedup_key, limits):
        raise InvalidRequest(
            f"dedup_key has 1 to {limits.max_label_chars} characters, none of them NUL"
        )
    check_window(key.window_ms)
    return key


def check_window(window_ms: int) -> None:
    check_range("dedup_window_ms", window_ms, 0, MAX_WINDOW_MS)


def check_plan(members: Sequence[PlannedMember], limits: Limits) -> list[PlannedMember]:
    """The members, parents first; raises InvalidRequest.

    A name that none of them has must belong to a member that the flow already has.
    """
    if sum(m.role is MemberRole.MEMBER for m in members) > MAX_ADDED:
        raise InvalidRequest(f"a request takes at most {MAX_ADDED} members; add the others later")
    if sum(len(m.parents) for m in members) > MAX_EDGES:
        raise InvalidRequest(f"a request takes at most {MAX_EDGES} edges between members")
    by_name: dict[str, PlannedMember] = {}
    for member in members:
        _check_member(member, limits)
        if member.name is not None:
            if member.name in by_name:
                raise InvalidRequest(f"two members of the flow are named {member.name!r}")
            by_name[member.name] = member
    return _in_order(members, by_name)


def check_name(name: str, limits: Limits) -> str:
    if not is_label(name, limits):
        raise InvalidRequest(
            f"the name of a flow or a member has 1 to {limits.max_label_chars} characters,"
            " none of them NUL"
        )
    return name


def _check_member(member: PlannedMember, limits: Limits) -> None:
    if member.name is not None:
        check_name(member.name, limits)
    if member.draft.dedup_key is not None:
        raise InvalidRequest(
            "a member of a flow cannot have a dedup_key: it is sent once anyway;"
            " give the flow a dedup_key"
        )
    if member.inputs:
        inputs.check_body(member.draft.body)
    if member.role is not MemberRole.MEMBER and member.parents:
        raise InvalidRequest(f"{member.role} waits for the flow, not for members")


def _in_order(
    members: Sequence[PlannedMember], by_name: Mapping[str, PlannedMember]
) -> list[PlannedMember]:
    """Sorted so that parents come first; raises InvalidRequest for a cycle."""
    missing = {id(m): sum(name in by_name for name in m.parents) for m in members}
    children: dict[str, list[PlannedMember]] = {}
    for member in members:
        for name in member.parents:
            if name in by_name:
                children.setdefault(name, []).append(member)
    ordered = [m for m in members if not missing[id(m)]]
    for member in ordered:  # grows meanwhile
        for child in children.pop(member.name, ()) if member.name is not None else ():
            missing[id(child)] -= 1
            if not missing[id(child)]:
                ordered.append(child)
    if len(ordered) < len(members):
        stuck = sorted(m.name or "" for m in members if missing[id(m)])
        raise InvalidRequest(f"these members wait for each other in a cycle: {_some(stuck)}")
    return ordered


def _names(sources: Iterable[Source]) -> Iterable[str]:
    for source in sources:
        yield from (source,) if isinstance(source, str) else source


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:5]))
    return f"{shown} and {len(names) - 5} more" if len(names) > 5 else shown
