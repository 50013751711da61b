"""Operations answered in the caller's own process: no HTTP, no server."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any, TypeVar, cast

import msgspec

from penstock.api.operation import Operation, QueryRecord
from penstock.client.channel import Body
from penstock.client.off_loop import aside
from penstock.domain.datetimes import moment_of
from penstock.domain.errors import InvalidRequest
from penstock.operations.call import Call, Handlers, Reply
from penstock.ports.unit_of_work import Work, run_steps

Answer = TypeVar("Answer")


class LocalChannel:
    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers

    def request(
        self,
        operation: Operation[Answer],
        body: Body | None = None,
        query: QueryRecord | None = None,
        *,
        only_new: bool = False,
        **path: str,
    ) -> Answer:
        call = Call(
            path=path,
            body=_record(operation, body),
            query=_checked(operation, query),
            only_new=only_new,
            instant=moment_of,
        )
        handler = self._handlers[operation]

        def run() -> Any:
            work = handler(call)
            if isinstance(work, Generator):
                answer = run_steps(work)
            else:
                answer = work.result() if isinstance(work, Work) else work
            return answer.answer if isinstance(answer, Reply) else answer

        return cast(Answer, aside(run))


def _checked(operation: Operation[Any], query: QueryRecord | None) -> QueryRecord | None:
    """With the same defaults and limits as over HTTP, where decoding sets them."""
    if query is None:
        return None if operation.query is None else operation.query()
    try:
        return msgspec.convert(msgspec.to_builtins(query), type(query))
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"query: {error}") from None


def _record(operation: Operation[Any], body: Body | None) -> Any:
    if operation.request is None:
        return None
    if body is None:  # as an empty body over HTTP
        body = {}
    if operation.is_partial or not isinstance(body, Mapping):
        return body
    try:
        return msgspec.convert(body, operation.request)
    except msgspec.ValidationError as error:
        raise InvalidRequest(str(error)) from None
