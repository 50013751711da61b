"""Executes operations in the caller's own process: no HTTP, no server."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import msgspec

from penstock.api.operation import Operation, QueryRecord
from penstock.client.blocking import run_off_loop
from penstock.client.channel import Ask, Body, Channel
from penstock.domain.datetimes import moment_of
from penstock.domain.errors import InvalidRequest
from penstock.operations.call import Call, Handlers, StatusAnswer
from penstock.operations.paging import check_limit, limits_of
from penstock.ports.unit_of_work import Step, Work, await_steps, run_steps


class LocalChannel(Channel):
    """`refuse_deadlock` raises if a write would wait for a transaction of the calling thread."""

    def __init__(
        self, handlers: Handlers, *, refuse_deadlock: Callable[[], None] = lambda: None
    ) -> None:
        self._handlers = handlers
        self._refuse_deadlock = refuse_deadlock

    def ask(self, ask: Ask, tx: object = None) -> Any:
        call = _call(ask)
        handler = self._handlers[ask.operation]

        def run() -> Any:
            work = handler(call)
            if isinstance(work, Generator):
                return run_steps(work, partial(_result, tx=tx))
            return _result(work, tx) if isinstance(work, Work) else work

        if tx is not None:  # a transaction belongs to the calling thread
            return _answer(run())
        if ask.operation.method != "GET":
            self._refuse_deadlock()
        return _answer(run_off_loop(run))

    async def ask_async(self, ask: Ask, tx: object = None) -> Any:
        work = self._handlers[ask.operation](_call(ask))
        if isinstance(work, Generator):
            return _answer(await await_steps(work, partial(_result_async, tx=tx)))
        return _answer(await _result_async(work, tx) if isinstance(work, Work) else work)


def _call(ask: Ask) -> Call[Any, Any]:
    return Call(
        path=ask.path,
        body=_record(ask.operation, ask.body),
        query=_check_query(ask.operation, ask.query),
        only_new=ask.only_new,
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


def _check_query(operation: Operation[Any], query: QueryRecord | None) -> QueryRecord | None:
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
