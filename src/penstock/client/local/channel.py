"""Operations answered in the caller's own process: no HTTP, no server."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, TypeVar, cast

from penstock.api.operation import Operation, QueryRecord, RequestRecord
from penstock.client.off_loop import aside
from penstock.domain.datetimes import moment_of
from penstock.operations.call import Call, Handlers
from penstock.ports.unit_of_work import Work, run_steps

Answer = TypeVar("Answer")


class LocalChannel:
    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers

    def request(
        self,
        operation: Operation[Answer],
        body: RequestRecord | Mapping[str, Any] | None = None,
        query: QueryRecord | None = None,
        **path: str,
    ) -> Answer:
        # What is left out has its defaults, as an empty body or query has over HTTP.
        if query is None and operation.query is not None:
            query = operation.query()
        if body is None and operation.request is not None:
            body = {} if operation.is_partial else operation.request()
        call = Call(path=path, body=body, query=query, instant=moment_of)
        handler = self._handlers[operation]

        def run() -> Any:
            work = handler(call)
            if isinstance(work, Generator):
                return run_steps(work)
            return work.result() if isinstance(work, Work) else work

        return cast(Answer, aside(run))
