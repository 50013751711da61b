"""Slots: so many jobs at a time, wherever they run; the rest of what is held stands in line.

Whoever has ended a job takes the next one from the line himself and goes on with it if it is of his
own way; otherwise he hands his slot over.  So a job costs no switch of threads and no lock as long
as the line is not empty.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from penstock.worker.running_job import Held, Way

_log = logging.getLogger("penstock.worker")


class Slots:
    def __init__(
        self,
        count: int,
        *,
        run: Callable[[Held], None],
        to_loop: Callable[[Held], None],
    ) -> None:
        self._run = run
        self._to_loop = to_loop
        self._count = count
        self._free = count
        self._lock = threading.Lock()
        self._inbox: SimpleQueue[Held | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0  # threads that wait, those not counted that were just given something
        self.line: deque[Held] = deque()

    def give(self, held: Sequence[Held]) -> None:
        """In their order, behind those that wait."""
        self.line.extend(held)
        begun = []
        with self._lock:
            while self._free and self.line:
                self._free -= 1
                begun.append(self.line.popleft())
        for each in begun:
            self._start(each)

    def take_back(self) -> list[Held]:
        """Those that have not begun."""
        taken = []
        while True:
            try:
                taken.append(self.line.pop())
            except IndexError:
                return taken[::-1]

    def next_for(self, *, is_loop: bool) -> Held | None:
        """For one that has just ended a job: the next of its own way; None gives the slot away."""
        try:
            held = self.line.popleft()
        except IndexError:
            with self._lock:
                if not self.line:
                    self._free += 1
                    return None
                held = self.line.popleft()
        if (held.way is Way.LOOP) is is_loop:
            return held
        self._start(held)
        return None

    def close(self) -> None:
        """Threads end after their job; those that do not end are left alone."""
        for _ in self._threads:
            self._inbox.put(None)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _start(self, held: Held) -> None:
        if held.way is Way.LOOP:
            self._to_loop(held)
            return
        with self._lock:
            is_one_more = not self._idle and len(self._threads) < self._count
            if not is_one_more:
                self._idle -= 1
        self._inbox.put(held)
        if is_one_more:
            name = f"penstock-slot-{len(self._threads) + 1}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        while True:
            held = self._inbox.get()
            if held is None:
                return
            while held is not None:
                try:
                    self._run(held)
                except BaseException:  # the slot must not be lost with the job
                    _log.exception("a slot failed; it takes the next job")
                held = self.next_for(is_loop=False)
            with self._lock:
                self._idle += 1
