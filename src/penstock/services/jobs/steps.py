"""Use cases of durable steps: record and list them, wait for signals, send signals."""

from __future__ import annotations

import msgspec

from penstock.domain.errors import SignalNotFound
from penstock.domain.limits import Limits
from penstock.domain.message import step as steps
from penstock.domain.message.draft import check_delay
from penstock.domain.message.lease import Lease, held_by
from penstock.domain.message.step import (
    SIGNAL_KEPT_MS,
    RecordedStep,
    Signal,
    StepKind,
    StepTimes,
    Wait,
)
from penstock.ports.clock import Clock
from penstock.ports.store import Session, Store
from penstock.ports.unit_of_work import Work, read, write
from penstock.services.message_views import view_of_id


class StepPage(msgspec.Struct, frozen=True):
    steps: list[RecordedStep]
    after_no: int | None  # where the next page begins; None: this was the last
    queue: str = ""  # of the message
    waits: list[Wait] = []


class SentSignal(msgspec.Struct, frozen=True):
    signal: Signal
    is_new: bool
    ended_waits: int


class StepService:
    def __init__(self, store: Store, clock: Clock, limits: Limits) -> None:
        self._store = store
        self._clock = clock
        self._limits = limits

    def record(
        self,
        lease: Lease,
        name: str,
        outcome: str,
        *,
        took_ms: int | None = None,
        kind: StepKind = StepKind.STEP,
    ) -> Work[tuple[RecordedStep, bool]]:
        """Record a step under a lease; a name that is recorded already keeps its first outcome.

        Raises InvalidRequest or TooLarge.  The work raises LeaseLost, and TooLarge for one step
        too many.
        """
        steps.check_step_name(name, self._limits)
        steps.check_outcome(outcome, self._limits)
        if took_ms is not None:
            check_delay("took_ms", took_ms)
        now = self._clock.now()
        times = StepTimes(kind, lease.lease_no, took_ms)
        return write(self._store, lambda s: s.steps.record(lease, name, outcome, times, now=now))

    def of_lease(self, lease: Lease, *, after_no: int, limit: int) -> Work[StepPage]:
        """The steps of a claimed message; the work raises LeaseLost."""

        def do(session: Session) -> StepPage:
            message = session.messages.by_numbers([lease.message_no])
            held = held_by(lease, message[0] if message else None)
            return self._page(session, held.message_no, after_no, limit)

        return read(self._store, do)

    def of_message(self, message_id: str, *, after_no: int, limit: int) -> Work[StepPage]:
        """The steps of a message, live or from history; the work raises MessageNotFound."""

        def do(session: Session) -> StepPage:
            view = view_of_id(session, message_id)
            message_no = view.message.message_no
            page = self._page(session, message_no, after_no, limit)
            waits = session.signals.waits_of(message_no)
            return msgspec.structs.replace(page, queue=view.queue, waits=waits)

        return read(self._store, do)

    def wait(
        self, lease: Lease, signal: str, *, step: str | None = None, timeout_ms: int | None = None
    ) -> Work[RecordedStep | Wait]:
        """Wait for a signal: the step with which that has ended, or the wait that is registered.

        Then the lease holder snoozes the message with the signal's name.  Raises InvalidRequest;
        the work raises LeaseLost.
        """
        steps.check_signal_name(signal, self._limits)
        name = signal if step is None else steps.check_step_name(step, self._limits)
        now = self._clock.now()
        until_at = None if timeout_ms is None else now + check_delay("timeout_ms", timeout_ms)
        return write(
            self._store, lambda s: s.signals.wait(lease, signal, name, until_at=until_at, now=now)
        )

    def sleep(self, lease: Lease, step: str, ms: int) -> Work[tuple[RecordedStep, int]]:
        """Begin or continue a durable sleep: its step, and how much of it is left.

        Raises InvalidRequest; the work raises LeaseLost.
        """
        outcome = steps.slept(check_delay("timeout_ms", ms))
        recording = self.record(lease, step, outcome, took_ms=ms, kind=StepKind.SLEEP)
        return recording.map(lambda done: (done[0], self._left_ms(done[0])))

    def _left_ms(self, sleep: RecordedStep) -> int:
        return steps.sleep_left_ms(sleep, now=self._clock.now())

    def wait_ms(self, wait: Wait) -> int:
        """How long to snooze the message."""
        return steps.wait_ms(wait, now=self._clock.now())

    def signal(self, name: str, body: str, *, keep_ms: int | None = None) -> Work[SentSignal]:
        """Send a signal; if one of this name is kept, that one stays.

        Raises InvalidRequest or TooLarge.
        """
        steps.check_signal_name(name, self._limits)
        steps.check_signal_body(body, self._limits)
        kept_ms = SIGNAL_KEPT_MS if keep_ms is None else check_delay("keep_ms", keep_ms)
        now = self._clock.now()
        signal = Signal(name, body, now, now + kept_ms)
        return write(self._store, lambda s: SentSignal(*s.signals.send(signal)))

    def get_signal(self, name: str) -> Work[Signal]:
        """The work raises SignalNotFound."""
        now = self._clock.now()

        def do(session: Session) -> Signal:
            found = session.signals.find(name, now=now)
            if found is None:
                raise SignalNotFound(name)
            return found

        return read(self._store, do)

    def _page(self, session: Session, message_no: int, after_no: int, limit: int) -> StepPage:
        found, is_last = session.steps.page(
            message_no,
            after_no=after_no,
            limit=limit,
            max_bytes=self._limits.max_answer_bytes,
        )
        return StepPage(found, None if is_last else found[-1].step_no)
