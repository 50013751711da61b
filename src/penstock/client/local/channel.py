"""Operations answered in the caller's own process: no HTTP, no server."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, TypeVar, cast

import msgspec

from penstock.api.operation import Operation, QueryRecord, RequestRecord
from penstock.client.off_loop import aside
from penstock.domain.datetimes import moment_of
from penstock.operations.call import Call, Handlers
from penstock.ports.unit_of_work import Step, Work, await_steps, run_steps

Answer = TypeVar("Answer")


class LocalChannel:
    """`refuse_deadlock` raises if a write would wait for a transaction of the calling thread."""

    def __init__(
        self, handlers: Handlers, *, refuse_deadlock: Callable[[], None] = lambda: None
    ) -> None:
        self._handlers = handlers
        self._refuse_deadlock = refuse_deadlock

    def request(
        self,
        operation: Operation[Answer],
        body: RequestRecord | Mapping[str, Any] | None = None,
        query: QueryRecord | None = None,
        *,
        tx: object = None,
        **path: str,
    ) -> Answer:
        call = _call(operation, body, query, path)
        handler = self._handlers[operation]

        def run() -> Any:
            work = handler(call)
            if isinstance(work, Generator):
                return run_steps(work, partial(_result, tx=tx))
            return _result(work, tx) if isinstance(work, Work) else work

        if tx is not None:  # it belongs to the calling thread
            return cast(Answer, run())
        if operation.method != "GET":
            self._refuse_deadlock()
        return cast(Answer, aside(run))

    async def request_async(
        self,
        operation: Operation[Answer],
        body: RequestRecord | Mapping[str, Any] | None = None,
        query: QueryRecord | None = None,
        *,
        tx: object = None,
        **path: str,
    ) -> Answer:
        work = self._handlers[operation](_call(operation, body, query, path))
        if isinstance(work, Generator):
            return cast(Answer, await await_steps(work, partial(_result_async, tx=tx)))
        return cast(Answer, await _result_async(work, tx) if isinstance(work, Work) else work)


def _call(
    operation: Operation[Any],
    body: RequestRecord | Mapping[str, Any] | None,
    query: QueryRecord | None,
    path: Mapping[str, str],
) -> Call[Any, Any]:
    if query is None and operation.query is not None:
        query = operation.query()
    return Call(
        path=path, body=body, query=query, instant=moment_of, json_value=msgspec.json.decode
    )


def _result(step: Step, tx: object) -> Any:
    return step.result_in(tx) if tx is not None and isinstance(step, Work) else step.result()


async def _result_async(step: Step, tx: object) -> Any:
    if tx is not None and isinstance(step, Work):
        return await step.result_in_async(tx)
    return await step
