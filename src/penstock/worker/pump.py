"""The pump: one thread that turns the crank of a worker.

A turn takes what the slots have finished, tells the store of it and claims as much as there is room
for, all in one transaction, and hands out what came.  Leases are kept and time limits watched on
the way.  `tick` is the whole of it; nothing here waits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from penstock.domain.errors import LeaseLost, NotFound, PenstockError
from penstock.domain.message.lease import Verb
from penstock.ports.clock import Clock, Dice
from penstock.ports.work import Answer, Handlers, Unanswered, Work, WorkAct, WorkSource
from penstock.worker.assignment import Order
from penstock.worker.circuit_gate import Gate
from penstock.worker.handling import Ready, prepare
from penstock.worker.job_table import Table
from penstock.worker.lease_keeper import Keeper, extension, unsaid
from penstock.worker.log import JobLog
from penstock.worker.outage import Outage
from penstock.worker.outcomes import timed_out
from penstock.worker.prefetch import Pace
from penstock.worker.running_job import Fate, Held, Way
from penstock.worker.slots import Slots

_LOOK_MS = 1_000  # how often to look without a wake-up
_BURST_LOOK_MS = 200  # in a burst there are no wake-ups
_AFTER_ERROR_MS = (200, 10_000)
_MOST_PER_CLAIM = 500
_LARGE_CHARS = 512 * 1024  # of all bodies: the claim may have ended early, with an answer full
_CLAIMS = "claims"
_CANCELLED = "it was cancelled, and not by the worker"


class Pump:
    """`tick` and `drain` belong to one thread; the others note what happens, and wake it."""

    def __init__(
        self,
        order: Order,
        source: WorkSource,
        handlers: Handlers,
        clock: Clock,
        dice: Dice,
        *,
        slots: Slots,
        table: Table,
        has_sandbox: bool = False,
        wake: Callable[[], None] = lambda: None,
        on_ended: Callable[[], None] = lambda: None,
        outage: Outage | None = None,
    ) -> None:
        """`on_ended`: called when jobs have ended, before more are claimed."""
        self.worker_id = "unregistered"
        self.is_draining = False
        self.is_woken = True  # there may be work
        self.ended = 0  # jobs that ran in this process
        self.finished: deque[tuple[Held, WorkAct | None]] = deque()
        self._told: deque[Held] = deque()  # those whose handler has something to say
        self._order = order
        self._source = source
        self._handlers = handlers
        self._clock = clock
        self._dice = dice
        self._slots = slots
        self._table = table
        self._has_sandbox = has_sandbox
        self._wake = wake
        self._on_ended = on_ended
        self._outage = outage or Outage()
        self._places = list(range(table.places))
        self._held: dict[str, Held] = {}
        self._timed: dict[str, Held] = {}
        self._unsent: list[tuple[Held | None, WorkAct]] = []  # ends that the store has not taken
        self._keeper = Keeper(order.lease_ms)
        self._pace = Pace()
        self._jobs = JobLog()
        self._gate = Gate(source)
        self._look_ms = _BURST_LOOK_MS if order.is_burst else _LOOK_MS
        self._look_at = 0
        self._found_nothing = False  # by the last claim
        self._errors = 0  # in a row
        self._resume_at = 0

    @property
    def is_empty(self) -> bool:
        """Nothing is held any more, and the store knows of everything."""
        left = (held for held in self._held.values() if held.fate is not Fate.GIVEN_BACK)
        return not self._unsent and not self.finished and next(left, None) is None

    @property
    def holds_any(self) -> bool:
        """Also what was given back, and has not noticed."""
        return bool(self._held)

    @property
    def is_dry(self) -> bool:
        """Nothing is held, and there was nothing to claim when the store was last asked."""
        return self._found_nothing and not (self._held or self.is_woken) and self.is_empty

    def tick(self, now: int) -> int:
        """One turn; returns when the next one is due if nothing happens before."""
        self._watch(now)
        self._give_up(now)
        self._gather(now)
        if self._errors and now < self._resume_at:
            return self._resume_at
        extensions = self._extensions(now)
        is_asked = self.is_woken or self._unsent or now >= self._look_at
        room = self._space if is_asked else 0
        if self._unsent or extensions or room:
            self._exchange(extensions, room, now)
        return self._next_at(now)

    def told(self, held: Held) -> None:
        """A handler wants its lease prolonged, tells how far it is, or begins to be timed.

        From any thread.
        """
        self._told.append(held)
        self._wake()

    def drain(self) -> None:
        """Claim nothing more, give back what has not begun; what runs may know that we end."""
        self.is_draining = True
        for held in self._slots.take_back():
            self._end(held, _release(held))
        for held in self._held.values():
            held.ask_to_stop()

    def give_back(self) -> None:
        """The time is over: stop what runs.  It will be run again, and loses no attempt."""
        for held in list(self._held.values()):
            if held.fate is None:
                held.doom(Fate.GIVEN_BACK)
                self._tell_end(held, _release(held))
            elif held.fate is not Fate.GIVEN_BACK:  # it was to stop before, and does not
                if held.owes_time_out:
                    self._tell_end(held, self._timed_out(held))
                held.fate = Fate.GIVEN_BACK

    def _watch(self, now: int) -> None:
        for held in list(self._timed.values()):
            if held.fate is None and held.deadline is not None and held.deadline <= now:
                held.doom(Fate.TIMED_OUT)
                if held.way is Way.THREAD:  # which nothing can stop: told at once
                    self._tell_end(held, self._timed_out(held))

    def _give_up(self, now: int) -> None:
        """What does not get to begin, by a full line or a slow sandbox, loses nothing by it."""
        for held in list(self._timed.values()):
            start_by = held.start_by
            if start_by is None or start_by > now or not held.give_up():
                continue
            try:
                self._slots.line.remove(held)
            except ValueError:  # it has a slot, and waits there for a sandbox
                self._tell_end(held, _release(held))
                if held.stop is not None:
                    held.stop()
            else:
                self._end(held, _release(held))

    def _gather(self, now: int) -> None:
        """What the slots have finished since."""
        count = 0
        while self.finished:
            held, act = self.finished.popleft()
            count += 1
            if held.started_at and held.way is not Way.SANDBOX:
                self.ended += 1
            if held.fate is None:
                self._end(held, act or _failed(held, _CANCELLED))
            elif held.owes_time_out:
                self._end(held, self._timed_out(held))
            else:
                self._forget(held)
        self._pace.note(count, now=now)
        if count:
            self._on_ended()

    def _end(self, held: Held, act: WorkAct) -> None:
        self._tell_end(held, act)
        self._held.pop(held.work.receipt, None)
        self._timed.pop(held.work.receipt, None)

    def _tell_end(self, held: Held, act: WorkAct) -> None:
        if held.work.route is not None:
            act = self._gate.ending(held, act, self._clock.now())
        self._unsent.append((held, act))

    def _timed_out(self, held: Held) -> WorkAct:
        return timed_out(held.work, held.ready.handler, dice=self._dice.share())

    def _forget(self, held: Held) -> None:
        """Nothing is left to be told."""
        if self._held.pop(held.work.receipt, None) is not None:
            self._timed.pop(held.work.receipt, None)
            self._gate.lost(held)
            self._free(held)

    def _free(self, held: Held) -> None:
        if held.place >= 0:
            self._table.free(held.place)
            self._places.append(held.place)
            held.place = -1

    def _extensions(self, now: int) -> list[tuple[Held, WorkAct]]:
        wanted: dict[str, Held] = {}
        while self._told:
            held = self._told.popleft()
            if held.fate is None and held.place >= 0:
                wanted[held.work.receipt] = held
        for held in self._keeper.due(self._held.values(), now=now):
            if held.owes_time_out:
                # It does not stop, and its lease is not to run out: then it would be run again.
                self._tell_end(held, self._timed_out(held))
                held.fate = Fate.LOST
            else:
                wanted[held.work.receipt] = held
        return [(held, extension(held, now=now)) for held in wanted.values()]

    @property
    def _space(self) -> int:
        """How many more may be held."""
        if self.is_draining:
            return 0
        ahead = self._pace.ahead if self._order.prefetch is None else self._order.prefetch
        room = min(self._order.slots + ahead - len(self._held), len(self._places))
        if self._order.max_jobs is not None:
            room = min(room, self._order.max_jobs - self.ended - len(self._held))
        return max(min(room, _MOST_PER_CLAIM), 0)

    def _exchange(self, extensions: list[tuple[Held, WorkAct]], room: int, now: int) -> None:
        """Tell and claim, in one transaction."""
        ends, self._unsent = self._unsent, []
        told = [*extensions, *ends]
        acts = [act for _, act in told]
        self.is_woken = False  # before the store is asked: what comes in meanwhile is not missed
        try:
            if room:
                works, answers = self._source.claim(
                    self._order.queues,
                    limit=room,
                    lease_ms=self._order.lease_ms,
                    worker_id=self.worker_id,
                    finishing=acts,
                )
            else:
                works, answers = [], self._source.act(acts)
        except (PenstockError, OSError) as error:
            self._send_again(told)
            self._step_back(error, now)
            return
        if not any(isinstance(answer, Unanswered) for answer in answers):
            self._errors = 0
            self._outage.end(_CLAIMS)
        if room:
            self._look_at = now + self._look_ms
            # A claim with acts may give nothing because a queue could not be asked.
            self._found_nothing = not works and not acts
            is_unsure = self._order.is_burst and not works and bool(acts)
            is_full = len(works) == room or sum(len(w.body) for w in works) > _LARGE_CHARS
            self.is_woken = self.is_woken or is_unsure or is_full
        self._answered(told, answers, now)
        self._gate.tell()
        if works:
            self._take(works, now)

    def _step_back(self, error: Exception, now: int) -> None:
        """The store does not answer: what was not told is told later."""
        first, most = _AFTER_ERROR_MS
        pause_ms = min(first << min(self._errors, 10), most)
        self._outage.begin(_CLAIMS, error)
        self._errors += 1
        self._resume_at = now + pause_ms

    def _answered(
        self,
        told: Sequence[tuple[Held | None, WorkAct]],
        answers: Sequence[Answer],
        now: int,
    ) -> None:
        missing: list[tuple[Held | None, WorkAct]] = []
        for (held, act), error in zip(told, answers, strict=True):
            if isinstance(error, Unanswered):
                missing.append((held, act))
                continue
            if held is None:
                continue
            if act.verb is Verb.EXTEND:
                if error is not None and held.work.receipt in self._held:
                    self._not_extended(held, act, error)
            elif error is None:
                self._jobs.ended(held, act, now=now)
            else:
                self._jobs.refused(held, act, error)
            if act.verb is not Verb.EXTEND and held.work.receipt not in self._held:
                self._free(held)
        if missing:
            self._send_again(missing)
            self._step_back(next(e for e in answers if isinstance(e, Unanswered)), now)

    def _send_again(self, told: Sequence[tuple[Held | None, WorkAct]]) -> None:
        """The store did not answer for these."""
        ends = [(held, act) for held, act in told if act.verb is not Verb.EXTEND]
        self._unsent = ends + self._unsent
        for held, act in told:
            if held is not None and act.verb is Verb.EXTEND:
                unsaid(held, act)
                self._told.append(held)

    def _not_extended(self, held: Held, act: WorkAct, error: PenstockError) -> None:
        if isinstance(error, LeaseLost | NotFound):
            held.doom(Fate.LOST)
            self._jobs.stopped(held)
            return
        # What its handler said makes no sense, but it is still ours: so without that.
        self._jobs.refused(held, act, error)
        held.lease_ms = self._order.lease_ms
        held.is_late_start = act.is_start
        held.renewed_at = 0

    def _take(self, works: Iterable[Work], now: int) -> None:
        taken: list[Ready] = []
        has_routes = False
        for work in works:
            ready = prepare(self._handlers, work, self._clock)
            if isinstance(ready, Ready):
                taken.append(ready)
                has_routes = has_routes or work.route is not None
            else:
                self._jobs.parked(work, ready)
                self._unsent.append((None, ready))
        if has_routes:
            taken, back = self._gate.admit(taken, now)
            self._unsent += [(None, act) for act in back]
        self._slots.give([self._hold(ready, now) for ready in taken])

    def _hold(self, ready: Ready, now: int) -> Held:
        work, handler = ready.work, ready.handler
        timeout_ms = handler.timeout_ms if work.timeout_ms is None else work.timeout_ms
        way = Way.LOOP if handler.is_async else Way.THREAD
        if self._has_sandbox and (work.crashes or (timeout_ms is not None and way is Way.THREAD)):
            way = Way.SANDBOX
        place = self._places.pop()
        held = Held(
            ready,
            way=way,
            place=place,
            now=now,
            timeout_ms=timeout_ms,
            lease_ms=self._order.lease_ms,
            on_told=self.told,
        )
        self._held[work.receipt] = held
        if timeout_ms is not None:
            self._timed[work.receipt] = held
        self._table.note(place, receipt=work.receipt, id=work.id, kind=work.kind or "")
        return held

    def _next_at(self, now: int) -> int:
        if self._errors:
            return self._resume_at
        if self._unsent or self.finished:
            return now
        dues = [self._keeper.next_at] if self._held else []
        if self._space:
            dues.append(now if self.is_woken else self._look_at)
        for held in self._timed.values():
            due_at = held.deadline or held.start_by
            if due_at is not None and held.fate is None:
                dues.append(due_at)
        return min(dues, default=now + self._look_ms)


def _release(held: Held) -> WorkAct:
    return WorkAct(receipt=held.work.receipt, verb=Verb.RELEASE, delay_ms=0)


def _failed(held: Held, text: str) -> WorkAct:
    return WorkAct(receipt=held.work.receipt, verb=Verb.FAIL, text=text)
