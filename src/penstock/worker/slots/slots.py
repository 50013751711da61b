"""Slots: they run a fixed number of jobs at a time; the other claimed jobs wait.

A slot that has ended a job takes the next one itself if that runs in the same place (a thread or
the event loop); otherwise it hands the slot over.  While jobs are waiting, starting one costs
neither a thread switch nor a lock.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from penstock.worker.claimed_job import ClaimedJob, RunsIn

_log = logging.getLogger("penstock.worker")


class Slots:
    def __init__(
        self,
        count: int,
        *,
        run: Callable[[ClaimedJob], None],
        to_loop: Callable[[ClaimedJob], None],
    ) -> None:
        self._run = run
        self._to_loop = to_loop
        self._count = count
        self._free = count
        self._lock = threading.Lock()
        self._inbox: SimpleQueue[ClaimedJob | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._idle = 0  # waiting threads, except those that have just been given a job
        self.waiting: deque[ClaimedJob] = deque()

    def give(self, jobs: Sequence[ClaimedJob]) -> None:
        """Start a job in each free slot; the others wait in order."""
        self.waiting.extend(jobs)
        begun = []
        with self._lock:
            while self._free and self.waiting:
                self._free -= 1
                begun.append(self.waiting.popleft())
        for job in begun:
            self._start(job)

    def take_back(self) -> list[ClaimedJob]:
        """Take back the jobs that have not begun."""
        taken = []
        while True:
            try:
                taken.append(self.waiting.pop())
            except IndexError:
                return taken[::-1]

    def next_for(self, *, is_loop: bool) -> ClaimedJob | None:
        """The next job that runs in the place of the ended one; None frees the slot."""
        try:
            job = self.waiting.popleft()
        except IndexError:
            with self._lock:
                if not self.waiting:
                    self._free += 1
                    return None
                job = self.waiting.popleft()
        if (job.runs_in is RunsIn.EVENT_LOOP) is is_loop:
            return job
        self._start(job)
        return None

    def close(self) -> None:
        """End the threads after their jobs; threads that do not end are abandoned."""
        for _ in self._threads:
            self._inbox.put(None)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _start(self, job: ClaimedJob) -> None:
        if job.runs_in is RunsIn.EVENT_LOOP:
            self._to_loop(job)
            return
        with self._lock:
            needs_thread = not self._idle and len(self._threads) < self._count
            if not needs_thread:
                self._idle -= 1
        self._inbox.put(job)
        if needs_thread:
            name = f"penstock-slot-{len(self._threads) + 1}"
            thread = threading.Thread(target=self._work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        while True:
            job = self._inbox.get()
            if job is None:
                return
            while job is not None:
                try:
                    self._run(job)
                except BaseException:  # the slot must not be lost with the job
                    _log.exception("a slot failed; it takes the next job")
                job = self.next_for(is_loop=False)
            with self._lock:
                self._idle += 1
