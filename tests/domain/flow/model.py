"""What should become of the members of a flow, as rules over the whole graph.

No counters and no sets of what has changed: after every event, each member that waits is judged
anew by all its edges, in rounds, until nothing changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from penstock.domain.flow.flow import FlowOutcome
from penstock.domain.flow.member import MemberState, RunsOn

S = MemberState
ENDED = frozenset({S.DONE, S.DEAD, S.CANCELLED, S.SKIPPED})
FAILED = frozenset({S.DEAD, S.CANCELLED})


class Expected(NamedTuple):
    """A flow as it should be stored."""

    remaining: int
    done: int
    failed: int
    skipped: int
    outcome: FlowOutcome | None


class FlowModel:
    def __init__(self, callbacks: Iterable[str] = (), *, is_open: bool = False) -> None:
        self.states: dict[str, S] = {}
        self.edges: dict[tuple[str, str], RunsOn] = {}
        self.heard: dict[tuple[str, str], S] = {}  # edges whose parent has ended, and how
        self.by_graph: set[str] = set()  # cancelled because of their parents
        self.callbacks = dict.fromkeys(callbacks, S.BLOCKED)
        self.is_open = is_open
        self.is_cancelled = False
        self.sent: list[str] = []  # every release, in order
        self.unsent: set[str] = set()  # could not be sent
        self.is_too_large: Callable[[str], bool] = lambda name: False  # with its inputs

    def add(self, new: Mapping[str, Mapping[str, RunsOn]]) -> None:
        """Members with their parents."""
        for name, parents in new.items():
            self.states[name] = S.BLOCKED
            for parent, on in parents.items():
                self.edges[parent, name] = on
        for parent, child in self.edges:
            if child in new and self.states[parent] in ENDED:
                self.heard[parent, child] = self.states[parent]
        self.judge()

    def end(self, ended: Mapping[str, S]) -> None:
        """Messages of members have ended."""
        for name, state in ended.items():
            self._end(name, state)
        self.judge()

    def end_blocked(self, name: str, state: S) -> None:
        """An operator has ended a member that was not sent."""
        self._end(name, state)
        self.judge()

    def bury_for_good(self, name: str) -> None:
        """A dead member cannot be redriven any more."""
        self.set_state(name, S.CANCELLED)

    @property
    def all_states(self) -> dict[str, S]:
        """Of members and callbacks."""
        return self.states | self.callbacks

    def set_state(self, name: str, state: S) -> None:
        (self.callbacks if name in self.callbacks else self.states)[name] = state

    def cancel(self) -> None:
        self.is_cancelled, self.is_open = True, False
        for name, state in self.states.items():
            if state is S.BLOCKED:
                self.states[name] = S.CANCELLED
        self.judge()

    def close(self) -> None:
        self.is_open = False
        self.judge()

    def come_back(self, names: Iterable[str]) -> None:
        """Dead members are redriven; callbacks have no children, and do not count."""
        names = list(names)
        for name in names:
            self.set_state(name, S.RELEASED)
        if not self.is_cancelled:  # otherwise they run alone
            self._forget(names)
        self.judge()

    def retry(self) -> None:
        """Members that could not be sent are tried again."""
        names, self.unsent = sorted(self.unsent), set()
        for name in names:
            self.states[name] = S.BLOCKED
        self._forget(names)
        self.judge()

    def _forget(self, names: Iterable[str]) -> None:
        """Their endings, and with them the verdicts about their children that were not sent."""
        left = list(names)
        while left:
            lost = [e for e in self.heard if e[0] in left and self._was_never_sent(e[1])]
            for edge in lost:
                del self.heard[edge]
            left = sorted({child for _, child in lost} & self.by_graph)
            for name in left:  # judged anew: another parent may still decide against it
                self.states[name] = S.BLOCKED
                self.by_graph.discard(name)

    def judge(self) -> None:
        while True:
            verdicts = {
                name: verdict
                for name, state in self.states.items()
                if state is S.BLOCKED and (verdict := self._verdict(name)) is not S.BLOCKED
            }
            if not verdicts:
                break
            for name, verdict in verdicts.items():
                if verdict is S.RELEASED and self.is_too_large(name):
                    self.unsent.add(name)
                    self._end(name, S.CANCELLED)
                    continue
                self.states[name] = verdict
                if verdict is S.RELEASED:
                    self.sent.append(name)
                else:
                    self.by_graph.add(name)
                    self._tell(name, verdict)
        self._call_back()

    @property
    def expected(self) -> Expected:
        states = list(self.states.values())
        remaining = sum(state not in ENDED for state in states)
        failed = sum(state in FAILED for state in states)
        outcome = None
        if not remaining and not self.is_open:
            outcome = FlowOutcome.FAILED if failed else FlowOutcome.DONE
            outcome = FlowOutcome.CANCELLED if self.is_cancelled else outcome
        return Expected(remaining, states.count(S.DONE), failed, states.count(S.SKIPPED), outcome)

    def _call_back(self) -> None:
        flow = self.expected
        has_ended = flow.outcome is not None
        runs = {
            "on_success": flow.outcome is FlowOutcome.DONE,
            "on_failure": flow.failed > 0 and not self.is_cancelled,
            "on_finish": has_ended,
        }
        skips = has_ended or self.is_cancelled
        for name, state in self.callbacks.items():
            if state not in (S.BLOCKED, S.SKIPPED):
                continue
            if runs[name]:
                self.callbacks[name] = S.RELEASED
                self.sent.append(name)
            elif name == "on_failure":
                self.callbacks[name] = S.SKIPPED if skips else S.BLOCKED
            else:
                self.callbacks[name] = S.SKIPPED if has_ended else S.BLOCKED

    def _verdict(self, name: str) -> S:
        edges = {edge: on for edge, on in self.edges.items() if edge[1] == name}
        must = [self.heard.get(edge) for edge, on in edges.items() if on is RunsOn.DONE]
        handled = [self.heard.get(edge) for edge, on in edges.items() if on is RunsOn.FAILED]
        if any(state in FAILED for state in must):
            return S.CANCELLED
        if S.SKIPPED in must:
            return S.SKIPPED
        if any(edge not in self.heard for edge in edges):
            return S.BLOCKED
        if handled and not any(state in FAILED for state in handled):
            return S.SKIPPED
        return S.RELEASED

    def _end(self, name: str, state: S) -> None:
        self.set_state(name, state)
        self._tell(name, state)

    def _tell(self, parent: str, state: S) -> None:
        for edge in self.edges:
            if edge[0] == parent:
                self.heard.setdefault(edge, state)

    def _was_never_sent(self, name: str) -> bool:
        return name not in self.sent
