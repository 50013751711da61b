"""Executes operations in the caller's own process: no HTTP, no server."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any, TypeVar, cast

import msgspec

from penstock.api.operation import Operation, QueryRecord
from penstock.client.blocking import run_off_loop
from penstock.client.channel import Body
from penstock.domain.datetimes import moment_of
from penstock.domain.errors import InvalidRequest
from penstock.operations.call import Call, Handlers, StatusAnswer
from penstock.operations.paging import check_limit, limits_of
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
        body: Body | None = None,
        query: QueryRecord | None = None,
        *,
        only_new: bool = False,
        tx: object = None,
        **path: str,
    ) -> Answer:
        call = _call(operation, body, query, path, only_new=only_new)
        handler = self._handlers[operation]

        def run() -> Any:
            work = handler(call)
            if isinstance(work, Generator):
                return run_steps(work, partial(_result, tx=tx))
            return _result(work, tx) if isinstance(work, Work) else work

        if tx is not None:  # a transaction belongs to the calling thread
            return cast(Answer, _answer(run()))
        if operation.method != "GET":
            self._refuse_deadlock()
        return cast(Answer, _answer(run_off_loop(run)))

    async def request_async(
        self,
        operation: Operation[Answer],
        body: Body | None = None,
        query: QueryRecord | None = None,
        *,
        only_new: bool = False,
        tx: object = None,
        **path: str,
    ) -> Answer:
        work = self._handlers[operation](_call(operation, body, query, path, only_new=only_new))
        if isinstance(work, Generator):
            return cast(Answer, _answer(await await_steps(work, partial(_result_async, tx=tx))))
        answer = await _result_async(work, tx) if isinstance(work, Work) else work
        return cast(Answer, _answer(answer))


def _call(
    operation: Operation[Any],
    body: Body | None,
    query: QueryRecord | None,
    path: Mapping[str, str],
    *,
    only_new: bool,
) -> Call[Any, Any]:
    return Call(
        path=path,
        body=_record(operation, body),
        query=_checked(operation, query),
        only_new=only_new,
        instant=moment_of,
        json_value=msgspec.json.decode,
    )


def _result(step: Step, tx: object) -> Any:
    return step.result_in(tx) if tx is not None and isinstance(step, Work) else step.result()


async def _result_async(step: Step, tx: object) -> Any:
    if tx is not None and isinstance(step, Work):
        return await step.result_in_async(tx)
    return await step


def _answer(answer: Any) -> Any:
    return answer.answer if isinstance(answer, StatusAnswer) else answer


def _checked(operation: Operation[Any], query: QueryRecord | None) -> QueryRecord | None:
    """Apply the same defaults and limits as HTTP decoding does."""
    if query is None:
        return None if operation.query is None else operation.query()
    for name, most in limits_of(type(query)).items():
        check_limit(name, getattr(query, name), most)
    try:
        return msgspec.convert(msgspec.to_builtins(query), type(query))
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"query: {error}") from None


def _record(operation: Operation[Any], body: Body | None) -> Any:
    """Build the record as HTTP would deliver it: checked, JSON values as text, instants as sent."""
    if operation.request is None:
        return None
    kind: Any = dict[str, Any] if operation.is_partial else operation.request
    try:
        return msgspec.json.decode(msgspec.json.encode({} if body is None else body), type=kind)
    except msgspec.ValidationError as error:
        raise InvalidRequest(str(error)) from None
