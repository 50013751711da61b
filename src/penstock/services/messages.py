"""Use cases of messages: send, claim, act on a lease, read, and the acts of operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypedDict, Unpack

from penstock.domain.errors import (
    InvalidRequest,
    LeaseLost,
    MessageNotFound,
    PenstockError,
    QueueNotFound,
    TooLarge,
)
from penstock.domain.limits import NUL, Limits
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.claim_key import MAX_KEY_CHARS
from penstock.domain.message.draft import (
    ID_DIGITS,
    Draft,
    NewMessage,
    check_delay,
    check_instant,
    is_label,
    send,
    uuid7,
)
from penstock.domain.message.lease import Lease, LeaseAct, Receipts, Verb
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.message.result import check_result
from penstock.domain.message.selection import place_of
from penstock.domain.queue.queue import Queue
from penstock.domain.text import sanitize
from penstock.domain.worker import MAX_KINDS
from penstock.ports.clock import Clock, Dice
from penstock.ports.store import Acted, Browse, Claim, Claimable, Claimed, Sent, Session, Store
from penstock.ports.ticket import DependentTicket, Ticket
from penstock.ports.unit_of_work import Steps, Work, read, write
from penstock.services.directory import Directory
from penstock.services.message_views import (
    MessagePage,
    Place,
    home_of,
    page_of,
    view_of_id,
)
from penstock.services.message_views import MessageView as MessageView

MAX_PROGRESS_CHARS = 4096
_NO_RESULTS: Mapping[str, str] = {}


class ClaimOptions(TypedDict, total=False):
    """Options of a claim besides its queue."""

    limit: int
    lease_ms: int | None
    claimed_by: str | None
    in_a_row: bool
    claim_key: str | None
    finishing: Sequence[LeaseAct]
    kinds: tuple[str, ...] | None


class MessageService:
    def __init__(
        self, store: Store, clock: Clock, dice: Dice, limits: Limits, directory: Directory
    ) -> None:
        self._store = store
        self._directory = directory
        self._clock = clock
        self._dice = dice
        self._limits = limits
        self._receipts = Receipts(store.secret)
        # Drafts and acts that are checked go to the store as they are.
        self.send, self.send_in, self.send_in_async = store.send, store.send_in, store.send_in_async
        self.act, self.act_in, self.act_in_async = store.act, store.act_in, store.act_in_async

    def draft(self, queue: Queue, draft: Draft) -> NewMessage:
        """Check a draft and give it an id; raises InvalidRequest or TooLarge."""
        return self._draft_at(self._clock.now(), queue, draft)

    def _draft_at(
        self, now: int, queue: Queue, draft: Draft, *, is_of_bus: bool = False
    ) -> NewMessage:
        return send(
            draft,
            queue,
            now=now,
            message_id=uuid7(now, self._dice.digits(ID_DIGITS)),
            limits=self._limits,
            is_of_bus=is_of_bus,
        )

    def send_to(self, name: str, drafts: Sequence[Draft]) -> Ticket[list[Sent | PenstockError]]:
        """Send to the queue of this name; raises InvalidRequest or TooLarge, and then sends none.

        The ticket may also raise them, and QueueNotFound.  Pass answers that are errors to
        `error_of`.
        """
        queue = self._directory.cached(name)
        if queue is None:
            return DependentTicket(
                self._directory.load_to_send(name), partial(self._send_all, drafts)
            )
        return self._send_all(drafts, queue)

    def _send_all(
        self, drafts: Sequence[Draft], queue: Queue
    ) -> Ticket[list[Sent | PenstockError]]:
        now = self._clock.now()
        return self._store.send([self._draft_at(now, queue, draft) for draft in drafts])

    def send_each(
        self, name: str, drafts: Sequence[Draft | PenstockError]
    ) -> Steps[list[Sent | PenstockError]]:
        """The same, but the answer to an invalid draft is its error, and the others are sent."""
        queue = self._directory.cached(name) or (yield self._directory.load_to_send(name))
        now = self._clock.now()
        planned = [self._draft_or_error(now, queue, draft) for draft in drafts]
        new = [plan for plan in planned if isinstance(plan, NewMessage)]
        left = iter((yield self._store.send(new)) if new else ())
        answers = [plan if isinstance(plan, PenstockError) else next(left) for plan in planned]
        return [a if isinstance(a, Sent) else self.error_of(name, a) for a in answers]

    def _draft_or_error(
        self, now: int, queue: Queue, draft: Draft | PenstockError
    ) -> NewMessage | PenstockError:
        try:
            return draft if isinstance(draft, PenstockError) else self._draft_at(now, queue, draft)
        except PenstockError as error:
            return error

    def send_one(self, name: str, draft: Draft) -> Steps[Sent]:
        """Raises InvalidRequest, TooLarge, QueueNotFound or QueueFull."""
        [answer] = yield self.send_to(name, [draft])
        if isinstance(answer, PenstockError):
            raise self.error_of(name, answer)
        sent: Sent = answer
        return sent

    def send_for_bus(self, name: str, draft: Draft) -> Steps[Sent]:
        """Send a draft that the bus has made; raises TooLarge, QueueNotFound or QueueFull."""
        queue = self._directory.cached(name) or (yield self._directory.load_to_send(name))
        new = self._draft_at(self._clock.now(), queue, draft, is_of_bus=True)
        [answer] = yield self._store.send([new])
        if isinstance(answer, PenstockError):
            raise self.error_of(name, answer)
        sent: Sent = answer
        return sent

    def error_of(self, name: str, error: PenstockError) -> PenstockError:
        """The error to report for the queue of this name, which the store knows only by number."""
        if isinstance(error, QueueNotFound):  # removed, but still cached
            self._directory.forget(name)
            return QueueNotFound(name)
        return error

    def claim(self, queue: Queue, **options: Unpack[ClaimOptions]) -> Ticket[Claimed]:
        """Claim due messages; see `plan_claim`."""
        return self._store.claim(self.plan_claim(queue, **options))

    def plan_claim(
        self,
        queue: Queue,
        *,
        limit: int = 1,
        lease_ms: int | None = None,
        claimed_by: str | None = None,
        in_a_row: bool = False,
        claim_key: str | None = None,
        finishing: Sequence[LeaseAct] = (),
        kinds: tuple[str, ...] | None = None,
    ) -> Claim:
        """Check a claim before it goes to the store; raises InvalidRequest.

        `in_a_row`: in a queue ordered by group, all ready messages of a group, not only the first.
        `claim_key`: for some minutes the same key returns the same messages; otherwise the ticket
        raises ClaimNotRepeatable.
        `finishing`: acts that are applied first, in the same transaction.
        `kinds`: only messages of these kinds, in order, however many others are ahead of them.
        """
        limits = self._limits
        if not 1 <= limit <= limits.max_claim:
            raise InvalidRequest(f"limit must be from 1 to {limits.max_claim}")
        if lease_ms is not None and not 0 <= lease_ms <= limits.max_lease_ms:
            raise InvalidRequest(f"lease_ms must be from 0 to {limits.max_lease_ms}")
        if claimed_by is not None and not is_label(claimed_by, limits):
            raise InvalidRequest(
                f"claimed_by has 1 to {limits.max_label_chars} characters, none of them NUL"
            )
        if claim_key is not None and not (
            0 < len(claim_key) <= MAX_KEY_CHARS and NUL not in claim_key
        ):
            raise InvalidRequest(f"claim_key has 1 to {MAX_KEY_CHARS} characters, none of them NUL")
        return Claim(
            queue_no=queue.queue_no,
            now=self._clock.now(),
            limit=limit,
            lease_ms=lease_ms,
            claimed_by=claimed_by,
            in_a_row=in_a_row,
            claim_key=claim_key,
            finishing=finishing,
            kinds=None if kinds is None else self._check_kinds(kinds, in_a_row),
            max_bytes=limits.max_answer_bytes,
        )

    def claim_from(self, name: str, **options: Unpack[ClaimOptions]) -> Steps[Claimed]:
        """Claim from the queue of this name; raises QueueNotFound."""
        queue = self._directory.cached(name) or (yield self._directory.load(name))
        try:
            claimed: Claimed = yield self.claim(queue, **options)
        except QueueNotFound as error:
            raise self.error_of(name, error) from None
        return claimed

    def claimable(self, queue_nos: Sequence[int]) -> Ticket[list[Claimable]]:
        """Which of these queues have something to claim, now or at a known instant."""
        return self._store.read(lambda session: session.queues.claimable(queue_nos))

    def _check_kinds(self, kinds: tuple[str, ...], in_a_row: bool) -> tuple[str, ...]:
        """Sorted and without duplicates, so that equal claims share a statement."""
        if in_a_row:
            raise InvalidRequest("give kinds or in_a_row, not both")
        if not 1 <= len(kinds) <= MAX_KINDS:
            raise InvalidRequest(f"kinds takes 1 to {MAX_KINDS} entries")
        if not all(is_label(kind, self._limits) for kind in kinds):
            raise InvalidRequest(
                f"a kind has 1 to {self._limits.max_label_chars} characters, none of them NUL"
            )
        return tuple(sorted(set(kinds)))

    def receipt(self, message: Message) -> str:
        return self._receipts.sign(message)

    def read_receipt(self, receipt: str) -> Lease:
        """Raises LeaseLost for anything that is not a receipt of a claim."""
        return self._receipts.read(receipt)

    def completions(
        self, queue: Queue, receipts: Sequence[str], results: Mapping[str, str] = _NO_RESULTS
    ) -> list[LeaseAct | PenstockError]:
        """Plan to complete these, or say why not; receipts of other queues are refused.

        `results`: JSON texts, by receipt.
        """
        now = self._clock.now()
        planned: list[LeaseAct | PenstockError] = []
        for receipt in receipts:
            try:
                lease = self._receipts.read(receipt)
                result = check_result(results.get(receipt), self._limits)
            except (LeaseLost, TooLarge) as error:
                planned.append(error)
                continue
            if lease.queue_no == queue.queue_no:
                planned.append(LeaseAct(lease=lease, verb=Verb.COMPLETE, now=now, result=result))
            else:  # the caller's key may not cover that queue
                planned.append(LeaseLost("of another queue"))
        return planned

    def plan(
        self,
        lease: Lease,
        verb: Verb,
        *,
        delay_ms: int | None = None,
        text: str | None = None,
        is_late_ok: bool = False,
        rejects_late: bool = False,
        progress: str | None = None,
        is_start: bool = False,
        result: str | None = None,
        signal: str | None = None,
    ) -> LeaseAct:
        """Check an act before it goes to the store; raises InvalidRequest or TooLarge.

        `progress`, `result`: JSON text.
        """
        if delay_ms is not None:
            if verb is Verb.EXTEND and not 0 <= delay_ms <= self._limits.max_lease_ms:
                raise InvalidRequest(f"lease_ms must be from 0 to {self._limits.max_lease_ms}")
            check_delay("delay_ms", delay_ms)
        if progress is not None and len(progress) > MAX_PROGRESS_CHARS:
            raise InvalidRequest(f"progress has at most {MAX_PROGRESS_CHARS} characters as JSON")
        may_back_off = verb is Verb.FAIL or verb is Verb.TIME_OUT or verb is Verb.EXTEND
        return LeaseAct(
            lease=lease,
            verb=verb,
            now=self._clock.now(),
            delay_ms=delay_ms,
            text=self.shorten(text),
            dice=self._dice.share() if may_back_off else 0.5,
            is_late_ok=is_late_ok,
            rejects_late=rejects_late,
            progress=progress,
            is_start=is_start,
            result=check_result(result, self._limits),
            signal=signal,
        )

    def release(self, messages: Sequence[Message]) -> Ticket[list[Acted | PenstockError]]:
        """Give back messages that were claimed for a client that has disconnected."""
        return self._store.act([self.plan(Lease.of(m), Verb.RELEASE) for m in messages])

    def of_leases(self, held: Sequence[Lease]) -> Work[dict[int, Message]]:
        """The messages of these leases, by number; those that are gone are left out."""
        nos = [lease.message_no for lease in held]
        return read(self._store, lambda s: {m.message_no: m for m in s.messages.by_numbers(nos)})

    def find(self, message_id: str) -> Work[Message | None]:
        """The live message, without its content."""
        return read(self._store, lambda session: session.messages.find(message_id))

    def get(self, message_id: str) -> Work[MessageView]:
        """Live, or from history; raises MessageNotFound."""
        return read(self._store, lambda session: view_of_id(session, message_id))

    def browse(
        self, queue: str, state: State, *, limit: int, after: Place | None
    ) -> Work[MessagePage]:
        """A page of messages, in claim order; raises QueueNotFound."""
        if not 1 <= limit <= self._limits.max_claim:
            raise InvalidRequest(f"limit must be from 1 to {self._limits.max_claim}")

        def do(session: Session) -> MessagePage:
            queue_no = session.queues.named(queue).queue_no
            found = session.messages.browse(
                Browse(queue_no=queue_no, state=state, limit=limit, after=after)
            )
            end = place_of(found[-1]) if len(found) == limit else None
            max_bytes = self._limits.max_answer_bytes
            return page_of(session, queue, found, end=end, max_bytes=max_bytes)

        return read(self._store, do)

    def complete(self, message_id: str, *, reason: str | None) -> Work[Message]:
        short = self.shorten(reason)
        return self._change(message_id, lambda m, _: lifecycle.complete_by_hand(m, reason=short))

    def cancel(
        self, message_id: str, *, reason: str | None, is_running_ok: bool = False
    ) -> Work[Message]:
        """`is_running_ok`: cancel it even if it is leased; the lease holder is fenced."""
        short = self.shorten(reason)
        return self._change(
            message_id,
            lambda m, _: lifecycle.cancel(m, reason=short, is_running_ok=is_running_ok),
        )

    def bury(
        self, message_id: str, *, reason: str | None, is_running_ok: bool = False
    ) -> Work[Message]:
        short = self.shorten(reason)
        return self._change(
            message_id, lambda m, _: lifecycle.bury(m, reason=short, is_running_ok=is_running_ok)
        )

    def reschedule(self, message_id: str, *, due_at: int) -> Work[Message]:
        check_instant("due_at", due_at)
        now = self._clock.now()
        return self._change(
            message_id, lambda m, _: lifecycle.reschedule(m, due_at=due_at, now=now)
        )

    def due_at(self, due_at: int | None, delay_ms: int | None) -> int:
        """The due date, from either argument; raises InvalidRequest unless exactly one is given."""
        if (due_at is None) is (delay_ms is None):
            raise InvalidRequest("give either due_at or delay_ms")
        if due_at is not None:
            return check_instant("due_at", due_at)
        assert delay_ms is not None
        return self._clock.now() + check_delay("delay_ms", delay_ms)

    def redrive(self, message_id: str) -> Work[Message]:
        """Send it back to the queue it died in."""
        now = self._clock.now()

        def do(session: Session) -> Message:
            message = session.messages.find(message_id)
            if message is None:
                raise MessageNotFound(message_id)
            home = home_of(session, message)
            return session.messages.change(
                message_id, lambda m, _: transfer.redrive(m, home, now=now), now=now
            )

        return write(self._store, do)

    def shorten(self, text: str | None) -> str | None:
        """Truncates errors and reasons that are too long: they must not make an act fail."""
        return text and sanitize(text[: self._limits.max_error_chars])

    def _change(self, message_id: str, how: Callable[[Message, Queue], Message]) -> Work[Message]:
        now = self._clock.now()
        return write(self._store, lambda s: s.messages.change(message_id, how, now=now))
