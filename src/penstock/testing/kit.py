"""The testing kit: an application over a store of its own, with a clock that stands still."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, ParamSpec, Self, TypedDict, Unpack

from penstock.client.app import Penstock
from penstock.client.jobs.job import Job
from penstock.client.off_loop import aside
from penstock.domain.duration import Duration, as_ms
from penstock.domain.limits import HOUR
from penstock.domain.message.lease import Verb
from penstock.domain.message.outcome import Outcome as HandlerOutcome
from penstock.ports.work import Work, WorkAct
from penstock.settings.store_url import SQLITE
from penstock.testing import views
from penstock.testing.clock import ManualClock
from penstock.testing.inline import Inline
from penstock.testing.runs import Run, Runner
from penstock.testing.views import JobView, Wanted
from penstock.worker.coroutines import run_here

P = ParamSpec("P")

_LEASE_MS = 12 * HOUR  # nobody else is there who could want the job
_MEMORY = Path("/dev/shm")
_ME = "penstock.testing"


class Match(TypedDict, total=False):
    """What else a job has to be, to be the one that is looked for."""

    queue: str
    group: str
    priority: int
    due_at: datetime
    tag: str
    entity_id: str


class Kit:
    """While it is open, everything that the application enqueues goes to the kit's store.

    Without a `url` that is a SQLite store made for it, in memory where the machine has such a
    folder; with one it is that store, for tests that enqueue in transactions of their own.
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

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            url = self._url or f"{SQLITE}{stack.enter_context(_folder())}/penstock.db"
            self._inline = Inline(self.app.settings(url), self.clock, self._sent)
            stack.callback(self._inline.close)
            stack.enter_context(self.app.standing_in(self._inline))
            self._stack = stack.pop_all()
        self._source = self.app.work_source()
        broker = self._inline.broker
        self._runner = Runner(self._source, self.app.handlers, self.clock, broker.dice)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    # --- running ---

    def run(self, *, raises: bool = True, at_most: int = 1_000) -> list[Run]:
        """Run all that is due, and what that enqueues, until nothing is due.

        With `raises` the first error of a handler comes out, after its job was failed as in
        production; without it the errors are told in the runs.  More than `at_most` runs mean that
        jobs enqueue each other for ever: AssertionError.
        """
        runs: list[Run] = []
        self._is_running = True
        try:
            while work := aside(self._claim):
                run, act = aside(lambda work=work: self._run(work))  # type: ignore[misc]
                self._note(runs, run, act, raises, at_most)
        finally:
            self._is_running = False
        return runs

    async def run_async(self, *, raises: bool = True, at_most: int = 1_000) -> list[Run]:
        """The same for async tests: async handlers run on the loop of the test."""
        runs: list[Run] = []
        self._is_running = True
        try:
            while work := await asyncio.to_thread(self._claim):
                run, act = await self._runner.run_async(work)
                self._note(runs, run, act, raises, at_most)
        finally:
            self._is_running = False
        return runs

    def perform(self, job: Job[P, Any], *args: P.args, **kwargs: P.kwargs) -> Run:
        """Enqueue this job and run it, and nothing else; errors are told in the run."""
        self._is_running = True
        try:
            enqueued = job.enqueue(*args, **kwargs)
            work = aside(lambda: self._claim_one(enqueued.id))
            assert work is not None, f"{job.kind} is not due, or its queue does not let it go"
            run, act = aside(lambda: self._run(work))
            aside(lambda: self._act(act))
        finally:
            self._is_running = False
        return run

    def advance(self, by: Duration) -> None:
        """Let time pass: what falls due comes back in line, and recurring work is sent."""
        self.clock.advance(ms=as_ms("by", by))
        aside(self._inline.broker.run_duties)

    @contextmanager
    def inline(self) -> Iterator[None]:
        """As long as it is held, jobs that are due run as soon as they are enqueued."""
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
        **match: Unpack[Match],
    ) -> list[JobView]:
        """Jobs that have not ended, due or not; those that are dead are among them."""
        wanted = _wanted(job, arguments, match)
        return [one for one in aside(lambda: views.live(self._inline.broker)) if wanted.fits(one)]

    def ended(
        self,
        job: Job[..., Any] | str | None = None,
        arguments: Mapping[str, object] | None = None,
        **match: Unpack[Match],
    ) -> list[JobView]:
        """Jobs that are done, or were cancelled."""
        wanted = _wanted(job, arguments, match)
        return [one for one in aside(lambda: views.ended(self._inline.broker)) if wanted.fits(one)]

    def assert_enqueued(
        self,
        job: Job[..., Any] | str,
        arguments: Mapping[str, object] | None = None,
        *,
        count: int | None = None,
        **match: Unpack[Match],
    ) -> list[JobView]:
        """There is such a job, or there are just so many; of `arguments` only those given count."""
        found = self.enqueued(job, arguments, **match)
        if found if count is None else len(found) == count:
            return found
        asked = "a job" if count is None else f"{count} jobs"
        wanted = _wanted(job, arguments, match)
        raise AssertionError(
            f"{asked} with {wanted} should be enqueued; there are {len(found)}\n{self._told()}"
        )

    def assert_not_enqueued(
        self,
        job: Job[..., Any] | str,
        arguments: Mapping[str, object] | None = None,
        **match: Unpack[Match],
    ) -> None:
        self.assert_enqueued(job, arguments, count=0, **match)

    # --- private ---

    def _claim(self) -> Work | None:
        queues = [view.queue.name for view in self._inline.broker.insight.all_queues().result()]
        work, _ = self._source.claim(queues, limit=1, lease_ms=_LEASE_MS, worker_id=_ME)
        return work[0] if work else None

    def _claim_one(self, job_id: str) -> Work | None:
        others: list[Work] = []
        while (work := self._claim()) is not None and work.id != job_id:
            others.append(work)
        acts = [WorkAct(receipt=other.receipt, verb=Verb.RELEASE) for other in others]
        self._source.act(acts)
        return work

    def _run(self, work: Work) -> tuple[Run, WorkAct]:
        if self._runner.is_async(work):
            return run_here(self._runner.run_async(work))
        return self._runner.run(work)

    def _note(self, runs: list[Run], run: Run, act: WorkAct, raises: bool, at_most: int) -> None:
        aside(lambda: self._act(act))
        runs.append(run)
        if raises and run.error is not None and not isinstance(run.error, HandlerOutcome):
            raise run.error
        if len(runs) > at_most:
            raise AssertionError(f"still not done after {at_most} runs: {run.kind} was the last")

    def _act(self, act: WorkAct) -> None:
        self._source.act([act])  # a handler that completed its own job leaves nothing to do

    def _sent(self) -> None:
        """What a handler enqueues has its turn when the handler is done."""
        if self._is_inline and not self._is_running:
            self.run()

    def _told(self) -> str:
        lines = [
            f"  {one.kind} {one.arguments} in {one.queue}, {one.state}" for one in self.enqueued()
        ]
        return "\n".join(["not ended:", *(lines or ["  nothing"])])


def _wanted(
    job: Job[..., Any] | str | None, arguments: Mapping[str, object] | None, match: Match
) -> Wanted:
    return Wanted(kind=views.kind_of(job), arguments=arguments, **match)


@contextmanager
def _folder() -> Iterator[str]:
    """In memory where there is such a folder: nobody needs these files after a power cut."""
    where = str(_MEMORY) if _MEMORY.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="penstock-", dir=where) as folder:
        yield folder
