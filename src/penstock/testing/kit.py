"""The testing kit: an application on a store of its own, with a manual clock."""

from __future__ import annotations

import asyncio
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, ParamSpec, Self, TypedDict, Unpack

import msgspec

from penstock.api.messages import SendResult
from penstock.client.app import Penstock
from penstock.client.blocking import run_off_loop
from penstock.client.jobs.handle import Enqueued
from penstock.client.jobs.job import Job
from penstock.client.local.backend import LocalBackend
from penstock.domain.duration import Duration, as_ms
from penstock.domain.errors import PenstockError
from penstock.domain.limits import HOUR
from penstock.domain.message.draft import Draft
from penstock.domain.message.lease import Verb
from penstock.domain.message.outcome import HandlerOutcome as HandlerOutcome
from penstock.domain.message.outcome import suspension_of
from penstock.ports.clock import Clock
from penstock.settings import Settings
from penstock.settings.store_url import SQLITE
from penstock.testing import views
from penstock.testing.clock import ManualClock
from penstock.testing.runs import Ended, KitRunner, Outcome, Run
from penstock.testing.views import JobQuery, JobView
from penstock.worker import outcomes
from penstock.worker.claimed_job import ClaimedJob, JobAct
from penstock.worker.slots.loop_thread import run_here


class Inline(LocalBackend):
    """Sends in the caller's own transaction are not reported, because it has not committed yet."""

    def __init__(self, settings: Settings, clock: Clock, on_sent: Callable[[], None]) -> None:
        super().__init__(settings, clock=clock)
        self.can_wait = False
        self._on_sent = on_sent

    def send(
        self, queue: str, drafts: Sequence[Draft], *, tx: object = None, **more: Any
    ) -> list[SendResult]:
        answers = super().send(queue, drafts, tx=tx, **more)
        if tx is None:
            self._on_sent()
        return answers

    async def send_async(
        self, queue: str, drafts: Sequence[Draft], *, tx: object = None, **more: Any
    ) -> list[SendResult]:
        answers = await super().send_async(queue, drafts, tx=tx, **more)
        if tx is None:
            self._on_sent()
        return answers


P = ParamSpec("P")

_LEASE_MS = 12 * HOUR  # no other worker could claim the job
_MEMORY = Path("/dev/shm")
_WORKER = "penstock.testing"


class JobMatch(TypedDict, total=False):
    """Further fields that a job must match."""

    queue: str
    group: str
    priority: int
    due_at: datetime
    tag: str
    entity_id: str


class Kit:
    """While it is open, everything that the application enqueues goes to the kit's store.

    Without a `url` the kit creates a SQLite store, in a memory-backed folder if there is one; with
    a `url` it uses that store, for tests that enqueue in transactions of their own.
    """

    def __init__(
        self, app: Penstock, *, clock: ManualClock | None = None, url: str | None = None
    ) -> None:
        self.app = app
        self.clock = clock or ManualClock()
        self._url = url
        self._stack = ExitStack()
        self._is_running = False
        self._is_inline = False
        self._claimed: deque[ClaimedJob] = deque()  # that did not fit into a chunk

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            url = self._url or f"{SQLITE}{stack.enter_context(_folder())}/penstock.db"
            self._inline = Inline(self.app.settings(url), self.clock, self._sent)
            stack.callback(self._inline.close)
            stack.enter_context(self.app.substitute(self._inline))
            self._stack = stack.pop_all()
        self._source = self.app.job_source()
        broker = self._inline.broker
        self._runner = KitRunner(self._source, self.app.handlers, self.clock, broker.dice)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    # --- running ---

    def run(self, *, raises: bool = True, at_most: int = 1_000) -> list[Run]:
        """Run all due jobs, and the due jobs that they enqueue, until none is due.

        With `raises`, the first error of a handler is raised, after its job was failed as in
        production; without it, errors are in the runs.  Raises AssertionError after `at_most` runs,
        because jobs then seem to enqueue each other forever.
        """
        runs: list[Run] = []
        with self._running():
            while claimed := run_off_loop(self._next):
                ends = run_off_loop(lambda job=claimed: self._run(job))  # type: ignore[misc]
                self._note(runs, ends, raises, at_most)
        return runs

    async def run_async(self, *, raises: bool = True, at_most: int = 1_000) -> list[Run]:
        """The same for async tests: async handlers run on the test's loop."""
        runs: list[Run] = []
        with self._running():
            while claimed := await asyncio.to_thread(self._next):
                ends = await self._runner.run_async(claimed)
                self._note(runs, ends, raises, at_most)
        return runs

    def perform(self, job: Job[P, Any], *args: P.args, **kwargs: P.kwargs) -> Run:
        """Enqueue this job and run only this one; errors are in the run."""
        with self._running():
            enqueued = job.enqueue(*args, **kwargs)
            claimed = run_off_loop(lambda: self._claim_one(enqueued.id))
            assert claimed is not None, f"{job.kind} is not due, or its queue holds it back"
            [claimed] = self._runner.gather(claimed, lambda limit: [])
            ends = run_off_loop(lambda: self._run(claimed))
            [run] = run_off_loop(lambda: self._report(ends))
            return run

    def advance(self, by: Duration) -> None:
        """Advance the clock: messages become due, leases expire, and recurring work is sent."""
        self.clock.advance(ms=as_ms("by", by))
        run_off_loop(self._inline.broker.run_duties)

    @contextmanager
    def inline(self) -> Iterator[None]:
        """Inside this context, due jobs run as soon as they are enqueued."""
        before, self._is_inline = self._is_inline, True
        try:
            yield
        finally:
            self._is_inline = before

    # --- looking ---

    def enqueued(
        self,
        job: Job[..., Any] | str | None = None,
        arguments: Mapping[str, object] | None = None,
        **match: Unpack[JobMatch],
    ) -> list[JobView]:
        """Jobs that have not ended, due or not, and dead jobs."""
        wanted = _wanted(job, arguments, match)
        return list(filter(wanted.fits, run_off_loop(lambda: views.live(self._inline.broker))))

    def ended(
        self,
        job: Job[..., Any] | str | None = None,
        arguments: Mapping[str, object] | None = None,
        **match: Unpack[JobMatch],
    ) -> list[JobView]:
        """Jobs that are done or cancelled."""
        wanted = _wanted(job, arguments, match)
        return list(filter(wanted.fits, run_off_loop(lambda: views.ended(self._inline.broker))))

    def steps(self, job: Run | JobView | Enqueued[Any] | str) -> dict[str, Any]:
        """The outcomes of a job's durable steps by name, in the order they were recorded."""
        found = self.app.jobs.steps(job if isinstance(job, str) else job.id).steps
        return {step.name: step.outcome for step in found}

    def assert_enqueued(
        self,
        job: Job[..., Any] | str,
        arguments: Mapping[str, object] | None = None,
        *,
        count: int | None = None,
        **match: Unpack[JobMatch],
    ) -> list[JobView]:
        """Assert at least one such job, or exactly `count`; compares only the given `arguments`."""
        found = self.enqueued(job, arguments, **match)
        if found if count is None else len(found) == count:
            return found
        expected = "a job" if count is None else f"{count} jobs"
        text = f"{expected} with {_wanted(job, arguments, match)} should be enqueued"
        raise AssertionError(f"{text}; there are {len(found)}\n{self._describe()}")

    def assert_not_enqueued(
        self,
        job: Job[..., Any] | str,
        arguments: Mapping[str, object] | None = None,
        **match: Unpack[JobMatch],
    ) -> None:
        self.assert_enqueued(job, arguments, count=0, **match)

    # --- private ---

    @contextmanager
    def _running(self) -> Iterator[None]:
        self._is_running = True
        try:
            yield
        finally:
            self._is_running = False

    def _next(self) -> ClaimedJob | None:
        """The next job, or the next chunk."""
        job = self._claimed.popleft() if self._claimed else self._claim()
        if job is None:
            return None
        found, *others = self._runner.gather(job, self._more)
        self._claimed.extend(others)
        return found

    def _more(self, limit: int) -> list[ClaimedJob]:
        known = [self._claimed.popleft() for _ in range(min(limit, len(self._claimed)))]
        return known + (self._claims(limit - len(known)) if limit > len(known) else [])

    def _claim(self) -> ClaimedJob | None:
        return next(iter(self._claims(1)), None)

    def _claims(self, limit: int) -> list[ClaimedJob]:
        queues = [view.queue for view in self._inline.broker.history.all_queues().result()]
        dead_letter_queues = {queue.settings.dead_letter_queue for queue in queues}
        unhandled = dead_letter_queues.difference(self.app.handlers.queues)  # as for a worker
        names = [queue.name for queue in queues if queue.name not in unhandled]
        jobs, _ = self._source.claim(
            names,
            limit=limit,
            lease_ms=_LEASE_MS,
            worker_id=_WORKER,
            in_a_row=self.app.handlers.chunk_queues,
        )
        return jobs

    def _claim_one(self, job_id: str) -> ClaimedJob | None:
        others: list[ClaimedJob] = []
        while (job := self._claim()) is not None and job.id != job_id:
            others.append(job)
        acts = [JobAct(receipt=other.receipt, verb=Verb.RELEASE) for other in others]
        self._source.act(acts)
        return job

    def _run(self, job: ClaimedJob) -> list[Ended]:
        if self._runner.is_async(job):
            return run_here(self._runner.run_async(job))
        return self._runner.run(job)

    def _note(self, runs: list[Run], ends: Sequence[Ended], raises: bool, at_most: int) -> None:
        ended = run_off_loop(lambda: self._report(ends))
        runs += ended
        for run in ended:
            is_outcome = (
                isinstance(run.error, HandlerOutcome) or suspension_of(run.error) is not None
            )
            if raises and run.error is not None and not is_outcome:
                raise run.error
        if len(runs) > at_most:
            kind = runs[-1].kind
            raise AssertionError(f"still not done after {at_most} runs: {kind} was the last")

    def _report(self, ends: Sequence[Ended]) -> list[Run]:
        """Apply the acts; returns the runs as they ended."""
        # Some may be rejected, because a handler may have completed its own job.
        answers = self._source.act([act for _, act in ends])
        runs = []
        for (run, act), error in zip(ends, answers, strict=True):
            instead = (
                outcomes.after_rejection(act, error) if isinstance(error, PenstockError) else None
            )
            if instead is not None:
                self._source.act([instead])
                run = msgspec.structs.replace(run, outcome=Outcome.BURIED, text=instead.text)
            runs.append(run)
        return runs

    def _sent(self) -> None:
        """Run jobs that a handler enqueues once the handler is done."""
        if self._is_inline and not self._is_running:
            self.run()

    def _describe(self) -> str:
        lines = [
            f"  {one.kind} {one.arguments} in {one.queue}, {one.state}" for one in self.enqueued()
        ]
        return "\n".join(["not ended:", *(lines or ["  nothing"])])


def _wanted(
    job: Job[..., Any] | str | None, arguments: Mapping[str, object] | None, match: JobMatch
) -> JobQuery:
    return JobQuery(kind=views.kind_of(job), arguments=arguments, **match)


@contextmanager
def _folder() -> Iterator[str]:
    """A memory-backed folder if there is one: the files need not survive a power cut."""
    where = str(_MEMORY) if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="penstock-", dir=where) as folder:
        yield folder
