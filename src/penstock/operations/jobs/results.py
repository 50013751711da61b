"""The result of a message, at once or when it has ended."""

from __future__ import annotations

from penstock.api import history
from penstock.api.history import Result, WaitForEnd
from penstock.domain.access.api_key import Role, allow
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import Limits
from penstock.domain.message.result import MessageResult
from penstock.operations.call import Call, Handlers
from penstock.ports.unit_of_work import Steps
from penstock.ports.waiting import EndWaiter
from penstock.services.jobs.results import ResultService


class ResultOperations:
    def __init__(self, service: ResultService, waiting: EndWaiter, limits: Limits) -> None:
        self._results = service
        self._waiting = waiting
        self._limits = limits

    def handlers(self) -> Handlers:
        return {history.RESULT: self.get}

    def get(self, call: Call[None, WaitForEnd]) -> Steps[Result]:
        wait_ms = call.query.wait_ms
        if not 0 <= wait_ms <= self._limits.max_wait_ms:
            raise InvalidRequest(f"wait_ms must be from 0 to {self._limits.max_wait_ms}")
        if wait_ms:
            found = yield from self._wait(call, wait_ms)
        else:
            found = yield from self._find_allowed(call)
        return _record(found, call)

    def _wait(self, call: Call[None, WaitForEnd], wait_ms: int) -> Steps[MessageResult]:
        with self._waiting.register(call.path["id"]) as waiter:
            found = yield from self._find_allowed(call)
            if found.is_ended:
                return found
            ended: MessageResult | None = yield waiter.wait(wait_ms)
            return ended or found

    def _find_allowed(self, call: Call[None, WaitForEnd]) -> Steps[MessageResult]:
        found = yield from self._results.get(call.path["id"])
        allow(call.caller, Role.READ, found.queue)
        return found


def _record(found: MessageResult, call: Call[None, WaitForEnd]) -> Result:
    return Result(
        id=found.id,
        state=found.state,
        is_ended=found.is_ended,
        result=None if found.result is None else call.json_value(found.result),
        error=found.error,
        reason=found.reason,
        finished_at=None if found.finished_at is None else call.instant(found.finished_at),
    )
