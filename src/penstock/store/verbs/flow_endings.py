"""What follows when members of flows end, or come back: others run, or are cancelled.

All of it happens in the transaction that ends the member.  The row of a flow is the lock of all its
members and edges: where several nodes write, a transaction locks it after its messages, and holds
it until the commit.  So two transactions that end two parents of a member follow one another, and
the second sees what the first has counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.domain.flow.flow import Flow
from penstock.domain.flow.member import ENDINGS, MemberState
from penstock.domain.message.lifecycle import LIVE, Message, State
from penstock.store.verbs.flow_releases import FlowReleases
from penstock.store.verbs.flow_rows import flow_of
from penstock.store.verbs.flow_step import FlowEvent, FlowStep
from penstock.store.verbs.transaction_state import TransactionState, json_list


class FlowEndings:
    def __init__(self, transaction: TransactionState, releases: FlowReleases) -> None:
        self._transaction = transaction
        self._releases = releases
        self._db = transaction.db
        self.reset()

    def reset(self) -> None:
        """Forget what was noted."""
        self.events: list[FlowEvent] = []
        self.is_deferred = False  # more endings of this transaction follow

    def note(self, before: Message, after: Message, *, result: str | None = None) -> None:
        """A change of a message that is a member."""
        assert before.flow_no is not None
        state = _state_after(before, after)
        if state is not None:
            event = FlowEvent(before.message_no, before.flow_no, state, after.reason, result)
            self.events.append(event)

    def note_done(self, message_no: int, flow_no: int, result: str | None) -> None:
        """A completion on the fast path."""
        event = FlowEvent(message_no, flow_no, MemberState.DONE, None, result)
        self.events.append(event)

    def settle(self, *, now: int) -> None:
        """Carry out the consequences of all endings that were noted."""
        if not self.events or self.is_deferred:
            return
        events, self.events = self.events, []
        locked = self.lock({event.flow_no for event in events})
        step = FlowStep(self._transaction, self._releases, locked, now=now)
        for wave in _waves(events):
            step.apply(wave)
        step.finish()

    def lock(self, flow_nos: Iterable[int]) -> dict[int, Flow]:
        params = {"flow_nos": json_list(sorted(set(flow_nos)))}
        return {flow.flow_no: flow for flow in map(flow_of, self._db.rows("flows.lock", params))}

    def skip_contended(self, messages: list[Message]) -> list[Message]:
        """Leave out messages that may end while their flow is locked; the next sweep finds them.

        Sweeps have locked their messages in any order, so they must not wait.
        """
        if not self._db.is_shared:
            return messages
        flow_nos = {m.flow_no for m in messages if m.flow_no is not None and _may_end(m)}
        if not flow_nos:
            return messages
        params = {"flow_nos": json_list(sorted(flow_nos))}
        free = {flow_of(row).flow_no for row in self._db.rows("flows.try_lock", params)}
        busy = flow_nos - free
        return [m for m in messages if m.flow_no not in busy or not _may_end(m)]


def _may_end(message: Message) -> bool:
    """What expires, or loses its last attempt; a delay that is over ends nothing by itself."""
    return message.state is not State.WAITING or message.expires_at is not None


def _state_after(before: Message, after: Message) -> MemberState | None:
    """What a change means for the member, if anything; dead letters have ended for the flow."""
    if after.state in LIVE and after.dead_from is None:
        came_back = before.state is State.DEAD or before.dead_from is not None
        return MemberState.RELEASED if came_back else None
    if after.dead_from is not None and before.dead_from is None:
        return MemberState.DEAD  # moved to its dead-letter queue, where it is ready
    return ENDINGS.get(after.state)


def _waves(events: list[FlowEvent]) -> Iterator[list[FlowEvent]]:
    """Endings and returns apart, and events of the same message one after the other."""
    wave: list[FlowEvent] = []
    seen: set[int] = set()
    for event in events:
        is_return = event.state is MemberState.RELEASED
        was_return = bool(wave) and wave[0].state is MemberState.RELEASED
        if event.message_no in seen or (wave and is_return is not was_return):
            yield wave
            wave, seen = [], set()
        wave.append(event)
        seen.add(event.message_no)
    if wave:
        yield wave
