"""Long polls for jobs at a server.

A server announces jobs only by answering a claim.  So while a worker has free slots, a claim waits
at each of its queues.  The first one that gets a job keeps it for the worker's next claim; the
others release their jobs, until the worker has free slots again.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from penstock.client.errors import Unreachable
from penstock.client.remote.server import RawMessage, Remote
from penstock.domain.errors import PenstockError, QueueNotFound
from penstock.domain.limits import DEFAULT_LIMITS
from penstock.domain.message.lease import Verb
from penstock.supervision.health import NodeHealth
from penstock.supervision.threads import SupervisedThread

_log = logging.getLogger("penstock.client")
_PAUSE_S = 1.0  # after an error, and while a queue does not exist


class IdleWorker(msgspec.Struct, frozen=True):
    """A worker with free slots, and how it claims."""

    lease_ms: int
    worker_id: str


class LongPolls:
    """The claims that wait for one worker."""

    def __init__(self, remote: Remote, queues: Sequence[str], callback: Callable[[], None]) -> None:
        self.queues = frozenset(queues)
        self._remote = remote
        self._callback = callback
        self._changed = threading.Condition()
        self._idle: IdleWorker | None = None
        self._found: list[RawMessage] = []
        self._is_stopped = False
        for queue in queues:
            name = f"penstock-waiting-{queue}"
            SupervisedThread(name, partial(self._wait, queue), health=NodeHealth()).start()

    def begin(self, idle: IdleWorker) -> None:
        """Start polling: the worker has free slots."""
        with self._changed:
            if not self._found:
                self._idle = idle
                self._changed.notify_all()

    def take(self) -> list[RawMessage]:
        """Take the jobs found; from now on the worker claims for itself."""
        with self._changed:
            found, self._found = self._found, []
            self._idle = None
        return found

    def stop(self) -> None:
        """Stop polling; jobs that were not taken, or are found later, are released."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()
        self._release(self.take())

    def _wait(self, queue: str) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._idle is not None or self._is_stopped)
                idle = self._idle
                if self._is_stopped or idle is None:
                    return
            messages = self._claim(queue, idle)
            if messages and not self._hand_over(messages):
                self._release(messages)

    def _claim(self, queue: str, idle: IdleWorker) -> list[RawMessage]:
        try:
            _, messages = self._remote.complete_and_claim_raw(
                queue,
                (),
                limit=1,
                lease_ms=idle.lease_ms,
                claimed_by=idle.worker_id,
                wait_ms=DEFAULT_LIMITS.max_wait_ms,
            )
        except (PenstockError, Unreachable) as error:
            if not isinstance(error, QueueNotFound):  # the worker's own claims report it
                _log.debug("cannot wait for jobs in %r: %s", queue, error)
            with self._changed:
                self._changed.wait_for(lambda: self._is_stopped, timeout=_PAUSE_S)
            return []
        return messages

    def _hand_over(self, messages: list[RawMessage]) -> bool:
        with self._changed:
            if self._idle is None or self._is_stopped:
                return False
            self._found += messages
            self._idle = None
        self._callback()
        return True

    def _release(self, messages: Sequence[RawMessage]) -> None:
        for message in messages:
            try:
                self._remote.act(message.receipt, Verb.RELEASE)
            except (PenstockError, Unreachable) as error:  # the lease then expires
                _log.warning("cannot release %s: %s", message.id, error)
