"""The consequences of endings in locked flows: loops over sets, however deep the graph is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from penstock.domain.flow import flow as flows
from penstock.domain.flow.flow import Flow
from penstock.domain.flow.member import (
    OUTCOMES,
    Member,
    MemberDecision,
    MemberState,
    ParentOutcome,
    Parents,
    RunsOn,
    comes_back,
    decide,
    parents_of,
    refused,
)
from penstock.store.verbs.flow_releases import FlowReleases
from penstock.store.verbs.flow_rows import flow_params, member_of, member_params
from penstock.store.verbs.transaction_state import TransactionState, json_list

Heard = dict[int, list[tuple[RunsOn, ParentOutcome]]]  # by the number of the child


_NO_PARENTS = Parents()


class FlowEvent(NamedTuple):
    """A message of a flow has ended; or has come back (RELEASED)."""

    message_no: int
    flow_no: int
    state: MemberState
    reason: str | None = None
    result: str | None = None


class FlowStep:
    """The consequences of some endings, in flows that are locked."""

    def __init__(
        self,
        transaction: TransactionState,
        releases: FlowReleases,
        locked: Mapping[int, Flow],
        *,
        now: int,
    ) -> None:
        self._transaction = transaction
        self._releases = releases
        self._db = transaction.db
        self._before = dict(locked)
        self.flows = dict(locked)
        self._now = now

    def apply(self, events: list[FlowEvent]) -> None:
        """Endings and returns of different messages."""
        members = self.members(event.message_no for event in events)
        self._keep_results(events)
        ended: dict[int, ParentOutcome] = {}
        back: list[Member] = []
        changed: defaultdict[tuple[MemberState, str | None], list[int]] = defaultdict(list)
        for event in events:
            member = members.get(event.message_no)
            if member is None:  # the flow was forgotten
                continue
            after = _member_after(member.state, event.state)
            if after is None:
                continue
            changed[after, event.reason].append(member.message_no)
            self._count(member, after)
            if member.state is MemberState.RELEASED:
                ended[member.message_no] = OUTCOMES[after]
            elif after is MemberState.RELEASED and not self.flows[member.flow_no].is_cancelled:
                back.append(member)
        for (state, reason), nos in changed.items():
            self._end(nos, state, reason)
        self.follow(ended)
        self.return_members([m.message_no for m in back])

    def follow(self, ended: Mapping[int, ParentOutcome], may_run: Iterable[Member] = ()) -> None:
        """Release, cancel or skip what waited for members that have ended."""
        to_run = list(may_run)
        left = dict(ended)
        while left or to_run:
            heard = self._mark(left)
            left = {}
            to_run += self._decide(heard, left)
            refused = self._releases.release(to_run, now=self._now) if to_run else []
            for member in refused:
                self._save_ended(member, left)
            to_run = []

    def return_members(self, nos: list[int], *, are_unsent: bool = False) -> None:
        """Members have come back: their children that were never sent are decided anew.

        `are_unsent`: they were never sent either, and one of them may wait for another.
        """
        left, touched = nos, set[int](nos if are_unsent else ())
        while left:
            params = {"parent_nos": json_list(sorted(left))}
            edges = self._db.rows("flows.marked_edges", params)
            if not edges:
                break
            self._db.update(
                "flows.unmark_edge",
                [{"parent_no": parent, "child_no": child} for parent, child in edges],
            )
            children = {child for _, child in edges}
            touched |= children
            back = [child for child in self.members(children).values() if comes_back(child)]
            for child in back:
                self._count(child, MemberState.BLOCKED)
            self._save(child.reopened(MemberState.BLOCKED) for child in back)
            left = [child.message_no for child in back]
        self._decide_anew(touched)

    def finish(self) -> None:
        """Decide what becomes of the flows and their callbacks, and store it."""
        turned: set[int] = set()
        saves: list[Flow] = []
        ended: list[Flow] = []
        for no, flow in sorted(self.flows.items()):
            before, after = self._before.get(no), flows.settled(flow, now=self._now)
            self.flows[no] = after
            if after != before:
                saves.append(after)
            if flows.may_call_back(before, after):
                turned.add(no)
            if after.has_ended and (before is None or not before.has_ended):
                self._transaction.ended.append(after.id)
                ended.append(after)
        self._db.update("flows.save", [flow_params(flow) for flow in saves])
        self._db.update("facts.add", list(map(_fact, ended)))
        if turned:
            self._call_back(turned)

    def members(self, message_nos: Iterable[int]) -> dict[int, Member]:
        params = {"message_nos": json_list(sorted(set(message_nos)))}
        rows = self._db.rows("flows.members", params)
        return {member.message_no: member for member in map(member_of, rows)}

    def count_parents(self, children: Iterable[int]) -> dict[int, Parents]:
        found: defaultdict[int, list[tuple[RunsOn, ParentOutcome | None]]] = defaultdict(list)
        params = {"child_nos": json_list(sorted(children))}
        for child, runs_on, outcome, count in self._db.rows("flows.edges_of", params):
            edge = (RunsOn(runs_on), None if outcome is None else ParentOutcome(outcome))
            found[child] += [edge] * count
        return {child: parents_of(edges) for child, edges in found.items()}

    def end_blocked(self, member: Member, state: MemberState, *, reason: str | None) -> None:
        """An operator ends a blocked member."""
        ended: dict[int, ParentOutcome] = {}
        self._save_ended(member.ended(state, now=self._now, reason=reason), ended)
        self.follow(ended)

    def retry(self, members: Iterable[Member]) -> None:
        """Members that could not be sent are tried again."""
        members = list(members)
        for member in members:
            self._count(member, MemberState.BLOCKED)
        self._save(member.reopened(MemberState.BLOCKED) for member in members)
        self.return_members([m.message_no for m in members], are_unsent=True)

    # --- parts ---

    def _mark(self, ended: Mapping[int, ParentOutcome]) -> Heard:
        """What the children learn of the members that have ended."""
        by_outcome: defaultdict[ParentOutcome, list[int]] = defaultdict(list)
        for no, outcome in ended.items():
            by_outcome[outcome].append(no)
        heard: Heard = defaultdict(list)
        for outcome, nos in by_outcome.items():
            params = {"parent_nos": json_list(sorted(nos)), "outcome": outcome.value}
            for child_no, runs_on in self._db.rows("flows.mark_edges", params):
                heard[child_no].append((RunsOn(runs_on), outcome))
        return heard

    def _decide(
        self,
        heard: Heard,
        ended: dict[int, ParentOutcome],
    ) -> list[Member]:
        """Returns the members that may run; adds those that will not to `ended`."""
        if not heard:
            return []
        to_run: list[Member] = []
        waiting: list[Member] = []
        for no, member in sorted(self.members(heard).items()):
            if not member.is_blocked:
                continue  # a parent that it did not need any more
            parents = member.parents
            for runs_on, outcome in heard[no]:
                parents = parents.after(runs_on, outcome)
            member = member.counted(parents)
            match decide(parents):
                case MemberDecision.RUN:
                    to_run.append(member)
                case MemberDecision.WAIT:
                    waiting.append(member)
                case decision:
                    self._save_ended(refused(member, decision, now=self._now), ended)
        self._save(waiting)
        return to_run

    def _save_ended(self, member: Member, ended: dict[int, ParentOutcome]) -> None:
        """A member that was blocked until now."""
        if not member.is_callback:
            flow = self.flows[member.flow_no]
            self.flows[member.flow_no] = flows.moved(flow, MemberState.BLOCKED, member.state)
        self._save([member])
        self._transaction.ended.append(member.id)
        ended[member.message_no] = OUTCOMES[member.state]

    def _decide_anew(self, touched: set[int]) -> None:
        """Most wait again; another parent may still decide against a member."""
        if not touched:
            return
        parents = self.count_parents(touched)
        members = self.members(touched).values()
        blocked = [
            m.counted(parents.get(m.message_no, _NO_PARENTS)) for m in members if m.is_blocked
        ]
        self._save(blocked)
        ended: dict[int, ParentOutcome] = {}
        to_run: list[Member] = []
        for member in blocked:
            match decide(parents.get(member.message_no, _NO_PARENTS)):
                case MemberDecision.RUN:
                    to_run.append(member)
                case MemberDecision.CANCEL | MemberDecision.SKIP as decision:
                    self._save_ended(refused(member, decision, now=self._now), ended)
        self.follow(ended, to_run)

    def _call_back(self, flow_nos: set[int]) -> None:
        """A callback that was skipped waits again if its flow does, and may then run after all."""
        params = {"flow_nos": json_list(sorted(flow_nos))}
        to_run: list[Member] = []
        saves: list[Member] = []
        for member in map(member_of, self._db.rows("flows.callbacks", params)):
            if member.state not in (MemberState.BLOCKED, MemberState.SKIPPED):
                continue
            match flows.decide_callback(member.role, self.flows[member.flow_no]):
                case MemberDecision.RUN:
                    to_run.append(member)
                case MemberDecision.WAIT:
                    saves.append(member.reopened(MemberState.BLOCKED))
                case decision if member.state is MemberState.BLOCKED:
                    saves.append(refused(member, decision, now=self._now))
        if to_run:
            saves += self._releases.release(to_run, now=self._now)
        self._save(saves)

    def _count(self, member: Member, after: MemberState) -> None:
        if not member.is_callback:
            flow = self.flows[member.flow_no]
            self.flows[member.flow_no] = flows.moved(flow, member.state, after)

    def _end(self, nos: list[int], state: MemberState, reason: str | None) -> None:
        params = {
            "message_nos": json_list(sorted(nos)),
            "state": state.value,
            "reason": reason,
            "now": None if state is MemberState.RELEASED else self._now,
        }
        self._db.post("flows.end_members", params)

    def _save(self, members: Iterable[Member]) -> None:
        self._db.update("flows.save_member", [member_params(m) for m in members])

    def _keep_results(self, events: Iterable[FlowEvent]) -> None:
        """Results that other members take as inputs."""
        results = {e.message_no: e.result for e in events if e.result is not None}
        if results:
            params = {"message_nos": json_list(sorted(results))}
            rows = [
                {"message_no": no, "result": results[no]}
                for (no,) in self._db.rows("flows.wanted", params)
            ]
            self._db.update("flows.keep_result", rows)


def _fact(flow: Flow) -> dict[str, Any]:
    text = msgspec.json.encode(flows.ending_of(flow)).decode()
    return {"at": flow.ended_at, "kind": flows.FLOW_ENDED, "subject": flow.id, "data": text}


def _member_after(before: MemberState, event: MemberState) -> MemberState | None:
    """The state of a member after what happened to its message; None: it means nothing."""
    match before, event:
        case MemberState.RELEASED, MemberState.DONE | MemberState.DEAD | MemberState.CANCELLED:
            return event
        case MemberState.DEAD, MemberState.RELEASED:
            return event
        case MemberState.DEAD, MemberState.DONE | MemberState.CANCELLED:
            return MemberState.CANCELLED  # a dead letter that cannot be redriven any more
    return None
