"""The part of an application that builds and follows flows."""

from __future__ import annotations

import asyncio
from abc import ABC
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

from penstock.api.messages import Message
from penstock.client.declared_queues import DeclaredQueues
from penstock.client.flows.builder import FlowBuilder, JobBatch
from penstock.client.flows.handle import FlowHandle
from penstock.client.jobs.job import BoundJob
from penstock.client.jobs.jobs import AnyJob
from penstock.client.local.lazy_backend import LazyBackend
from penstock.domain.duration import Duration
from penstock.domain.errors import InvalidRequest

if TYPE_CHECKING:
    from penstock.client.app import Penstock


class FlowMixin(ABC):
    _declared: DeclaredQueues
    _lazy_backend: LazyBackend

    def flow(
        self,
        name: str,
        *,
        on_success: BoundJob[Any] | None = None,
        on_failure: BoundJob[Any] | None = None,
        on_finish: BoundJob[Any] | None = None,
        dedup_key: str | None = None,
        dedup_window: Duration | None = None,
        tx: object = None,
    ) -> FlowBuilder:
        """Jobs that wait for each other: add them in a `with` block; see docs/flows.md."""
        return FlowBuilder(
            self._app,
            name,
            tx=tx,
            callbacks=_callbacks(on_success, on_failure, on_finish),
            dedup_key=dedup_key,
            dedup_window=dedup_window,
        )

    def batch(
        self,
        name: str,
        *,
        on_success: BoundJob[Any] | None = None,
        on_failure: BoundJob[Any] | None = None,
        on_finish: BoundJob[Any] | None = None,
    ) -> JobBatch:
        """A set of jobs with callbacks, to be filled in a `with` block."""
        callbacks = _callbacks(on_success, on_failure, on_finish)
        return JobBatch(self._app, name, callbacks=callbacks, is_open=True)

    def flow_by_id(self, flow_id: str) -> FlowHandle:
        """The handle of a flow that was enqueued elsewhere."""
        return FlowHandle(self._app, flow_id)

    def flow_of_job(self, job: AnyJob) -> FlowHandle:
        """The flow that a job is a member of; raises InvalidRequest if there is none."""
        return self._flow_of(self._app.jobs.get(job))

    async def flow_of_job_async(self, job: AnyJob) -> FlowHandle:
        return self._flow_of(await self._app.jobs.get_async(job))

    def _flow_of(self, job: Message) -> FlowHandle:
        if job.flow_id is None:
            raise InvalidRequest(f"job {job.id} is not a member of a flow")
        return FlowHandle(self._app, job.flow_id)

    def apply_declared(self, queues: Iterable[str], *, is_missing: bool = False) -> None:
        """Apply what is declared of these queues; `is_missing`: create the others, too."""
        backend = self._lazy_backend.get()
        for queue in sorted(queues):
            if is_missing or queue in self._declared:
                self._declared.apply(backend, queue)

    async def run_blocking(self, do: Callable[[], Any]) -> Any:
        """Run it in a thread, so that the event loop is not blocked."""
        return await asyncio.to_thread(do)

    @property
    def _app(self) -> Penstock:
        return cast("Penstock", self)


def _callbacks(
    on_success: BoundJob[Any] | None,
    on_failure: BoundJob[Any] | None,
    on_finish: BoundJob[Any] | None,
) -> dict[str, BoundJob[Any]]:
    given = {"on_success": on_success, "on_failure": on_failure, "on_finish": on_finish}
    return {role: job for role, job in given.items() if job is not None}
