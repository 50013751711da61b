"""Durable steps of messages, and the signals that they wait for."""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.api.jobs import signals, steps
from penstock.api.jobs.signals import SendSignal
from penstock.api.jobs.steps import BeginWait, RecordStep
from penstock.api.operation import PageQuery
from penstock.domain.access.api_key import Role, allow, is_limited
from penstock.domain.errors import InvalidRequest
from penstock.domain.message.lease import Lease
from penstock.domain.message.step import RecordedStep
from penstock.operations.call import Call, Handlers, StatusAnswer
from penstock.operations.drafts import text_of
from penstock.operations.paging import from_cursor, to_cursor
from penstock.ports.unit_of_work import Steps
from penstock.services.directory import Directory
from penstock.services.jobs.steps import StepPage, StepService
from penstock.services.messages import MessageService


class StepOperations:
    def __init__(
        self, service: StepService, messages: MessageService, directory: Directory
    ) -> None:
        self._steps = service
        self._messages = messages
        self._directory = directory

    def handlers(self) -> Handlers:
        return {
            steps.RECORD: self.record,
            steps.OF_LEASE: self.of_lease,
            steps.WAIT: self.wait,
            steps.OF_MESSAGE: self.of_message,
        }

    def record(self, call: Call[RecordStep, None]) -> Steps[steps.RecordedStep]:
        lease = yield from self._allowed_lease(call)
        outcome = text_of(call.body.outcome)
        step, is_new = yield from self._steps.record(
            lease, call.body.name, outcome, took_ms=call.body.took_ms
        )
        return steps.RecordedStep(**_fields(call, step), is_new=is_new)

    def of_lease(self, call: Call[None, PageQuery]) -> Steps[steps.Steps]:
        lease = yield from self._allowed_lease(call)
        page = yield from self._steps.of_lease(
            lease, after_no=_after_no(call.query), limit=call.query.limit
        )
        return steps.Steps(**_page(call, page))

    def wait(self, call: Call[BeginWait, None]) -> Steps[steps.Wait]:
        lease = yield from self._allowed_lease(call)
        wanted = call.body
        if wanted.signal is None:
            if wanted.step is None or wanted.timeout_ms is None:
                raise InvalidRequest("a wait without a signal requires step and timeout_ms")
            slept, left_ms = yield from self._steps.sleep(lease, wanted.step, wanted.timeout_ms)
            return steps.Wait(step=steps.Step(**_fields(call, slept)), delay_ms=left_ms)
        allow(call.caller, Role.CONSUME, wanted.signal)
        found = yield from self._steps.wait(
            lease, wanted.signal, step=wanted.step, timeout_ms=wanted.timeout_ms
        )
        if isinstance(found, RecordedStep):
            return steps.Wait(step=steps.Step(**_fields(call, found)), delay_ms=0)
        return steps.Wait(step=None, delay_ms=self._steps.wait_ms(found))

    def of_message(self, call: Call[None, PageQuery]) -> Steps[steps.MessageSteps]:
        page = yield from self._steps.of_message(
            call.path["id"], after_no=_after_no(call.query), limit=call.query.limit
        )
        allow(call.caller, Role.READ, page.queue)
        waits = [
            steps.PendingWait(
                signal=wait.name,
                step=wait.step,
                until_at=None if wait.until_at is None else call.instant(wait.until_at),
            )
            for wait in page.waits
        ]
        return steps.MessageSteps(**_page(call, page), waits=waits)

    def _allowed_lease(self, call: Call[Any, Any]) -> Steps[Lease]:
        """Raises Forbidden unless the caller may consume from the queue of the lease."""
        lease = self._messages.read_receipt(call.path["receipt"])
        if is_limited(call.caller):
            name = self._directory.known_name(lease.queue_no)
            if name is None:
                name = yield self._directory.name_of(lease.queue_no)
            allow(call.caller, Role.CONSUME, name)
        return lease


class SignalOperations:
    """A key's queue patterns apply to the names of signals, too."""

    def __init__(self, service: StepService) -> None:
        self._steps = service

    def handlers(self) -> Handlers:
        return {signals.SEND: self.send, signals.GET: self.get}

    def send(
        self, call: Call[SendSignal, None]
    ) -> Steps[signals.SentSignal | StatusAnswer[signals.SentSignal]]:
        name, body = call.path["signal"], call.body.body
        allow(call.caller, Role.PRODUCE, name)
        text = "null" if body is msgspec.UNSET else text_of(body)
        sent = yield from self._steps.signal(name, text, keep_ms=call.body.keep_ms)
        answer = signals.SentSignal.copy_of(
            sent.signal,
            call.instant,
            body=call.json_value(sent.signal.body),
            is_duplicate=not sent.is_new,
            ended_waits=sent.ended_waits,
        )
        return answer if sent.is_new else StatusAnswer(answer, 200)

    def get(self, call: Call[None, None]) -> Steps[signals.Signal]:
        allow(call.caller, Role.READ, call.path["signal"])
        found = yield from self._steps.get_signal(call.path["signal"])
        return signals.Signal.copy_of(found, call.instant, body=call.json_value(found.body))


def _after_no(query: PageQuery) -> int:
    place = from_cursor(query.cursor, 1)
    return 0 if place is None else place[0]


def _page(call: Call[Any, Any], page: StepPage) -> dict[str, Any]:
    return {
        "steps": [steps.Step(**_fields(call, step)) for step in page.steps],
        "next": None if page.after_no is None else to_cursor(page.after_no),
    }


def _fields(call: Call[Any, Any], step: RecordedStep) -> dict[str, Any]:
    return {
        "name": step.name,
        "outcome": call.json_value(step.outcome),
        "at": call.instant(step.at),
    }
