"""The calls that most tests of a store make, with the clock filled in.

And the seam that makes batches: `with driver.together():` holds the writer, so that everything
submitted inside the block is run as one batch when the block ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from msgspec.structs import replace

from penstock.domain.errors import PenstockError
from penstock.domain.message.history import Attempt, Ending, HistoryFilter
from penstock.domain.message.lease import Verb
from penstock.domain.message.lifecycle import Message, State
from penstock.domain.queue.queue import Counts, Queue
from penstock.ports.store import Acted, Browse, Claim, Claimed, Sent, Session, Store
from penstock.ports.ticket import Ticket
from tests.clocks import ManualClock
from tests.factories import a_new_message, an_act, some_settings

T = TypeVar("T")

WAIT_S = 30
EVERYTHING = 1_000_000


class StoreDriver:
    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store = store
        self.clock = clock
        self.queues: list[Queue] = []
        self.sent_ids: list[str] = []
        self.keeps_history = True

    @property
    def now(self) -> int:
        return self.clock.now()

    def write(self, what: Callable[[Session], T]) -> T:
        return self.store.write(what).result(WAIT_S)

    def read(self, what: Callable[[Session], T]) -> T:
        return self.store.read(what).result(WAIT_S)

    def queue(self, name: str = "mail", **settings: Any) -> Queue:
        wanted = some_settings(**settings)
        made = self.write(lambda s: s.queues.add(name, wanted, now=self.now))
        self.queues.append(made)
        return made

    def pause(self, queue: Queue, *, is_paused: bool = True) -> Queue:
        return self.write(
            lambda s: s.queues.change(queue.queue_no, is_paused=is_paused, now=self.now)
        )

    def change(self, queue: Queue, **settings: Any) -> Queue:
        wanted = some_settings(**settings)
        return self.write(lambda s: s.queues.change(queue.queue_no, settings=wanted, now=self.now))

    def tune(self, queue: Queue, **settings: Any) -> Queue:
        """Change these settings and leave the others."""
        now_so = self.read(lambda s: s.queues.get(queue.queue_no)).settings
        wanted = replace(now_so, **settings)
        return self.write(lambda s: s.queues.change(queue.queue_no, settings=wanted, now=self.now))

    def submit_send(self, queue: Queue, **draft: Any) -> Ticket[list[Sent | PenstockError]]:
        new = a_new_message(queue, now=self.now, **draft)
        self.sent_ids.append(new.message.id)
        return self.store.send([new])

    def send(self, queue: Queue, **draft: Any) -> str:
        """The id of the new message; anything but an acceptance fails the test."""
        [answer] = self.submit_send(queue, **draft).result(WAIT_S)
        assert isinstance(answer, Sent), answer
        assert not answer.is_duplicate
        return answer.id

    def send_many(self, queue: Queue, count: int, **draft: Any) -> list[str]:
        new = [a_new_message(queue, now=self.now, **draft) for _ in range(count)]
        self.sent_ids += [n.message.id for n in new]
        answers = self.store.send(new).result(WAIT_S)
        assert all(isinstance(answer, Sent) and not answer.is_duplicate for answer in answers)
        return [n.message.id for n in new]

    def submit_claim(self, queue: Queue, limit: int = 1, **wanted: Any) -> Ticket[Claimed]:
        return self.store.claim(Claim(queue_no=queue.queue_no, now=self.now, limit=limit, **wanted))

    def claim(self, queue: Queue, limit: int = 1, **wanted: Any) -> list[Message]:
        claimed = self.submit_claim(queue, limit, **wanted).result(WAIT_S)
        return [message for message, _ in claimed.messages]

    def claim_ids(self, queue: Queue, limit: int = 100) -> list[str]:
        return [message.id for message in self.claim(queue, limit)]

    def submit_act(
        self, verb: Verb, message: Message, **fields: Any
    ) -> Ticket[list[Acted | PenstockError]]:
        return self.store.act([an_act(verb, message, now=self.now, **fields)])

    def act(self, verb: Verb, message: Message, **fields: Any) -> Acted | PenstockError:
        [answer] = self.submit_act(verb, message, **fields).result(WAIT_S)
        return answer

    def complete(self, message: Message) -> None:
        answer = self.act(Verb.COMPLETE, message)
        assert isinstance(answer, Acted), answer

    def find(self, message_id: str) -> Message | None:
        return self.read(lambda s: s.messages.find(message_id))

    def get(self, message_id: str) -> Message:
        found = self.find(message_id)
        assert found is not None
        return found

    def alter(self, message_id: str, how: Callable[[Message, Queue], Message]) -> Message:
        return self.write(lambda s: s.messages.change(message_id, how, now=self.now))

    def browse(self, queue: Queue, state: State, limit: int = EVERYTHING) -> list[Message]:
        wanted = Browse(queue_no=queue.queue_no, state=state, limit=limit)
        return self.read(lambda s: s.messages.browse(wanted))

    def browse_ids(self, queue: Queue, state: State) -> list[str]:
        return [message.id for message in self.browse(queue, state)]

    def counts(self, queue: Queue) -> Counts:
        return self.read(lambda s: s.queues.counts([queue.queue_no]))[queue.queue_no]

    def endings(self, **wanted: Any) -> list[Ending]:
        wanted.setdefault("limit", EVERYTHING)
        return self.read(lambda s: s.history.search(HistoryFilter(**wanted)))

    def attempts(self, message_id: str) -> list[Attempt]:
        return self.read(lambda s: s.history.attempts(message_id))

    @contextmanager
    def together(self) -> Iterator[None]:
        with one_batch(self.store):
            yield


@contextmanager
def one_batch(store: Store) -> Iterator[None]:
    """Block the one writer; it then takes all requests submitted meanwhile as one batch."""
    hold = _Hold(store)
    try:
        yield
    finally:
        hold.release()


class _Hold:
    """A transaction that lasts until `release`."""

    def __init__(self, store: Store) -> None:
        self._is_in = threading.Event()
        self._may_go = threading.Event()
        self._thread = threading.Thread(
            target=lambda: store.write(self._stay).result(WAIT_S), daemon=True
        )
        self._thread.start()
        assert self._is_in.wait(WAIT_S)

    def _stay(self, _: Session) -> None:
        self._is_in.set()
        assert self._may_go.wait(WAIT_S)

    def release(self) -> None:
        self._may_go.set()
        self._thread.join(WAIT_S)
