"""Trace context that travels with a job, and spans where OpenTelemetry is installed.

The stored form is W3C's traceparent, followed by a space and the tracestate if there is one.  An
enqueue is a producer span, and the first attempt is its child.  Later attempts are separate traces
linked to it: otherwise a job that is retried for days would stretch one trace over days.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

from penstock.domain.errors import InvalidRequest
from penstock.domain.message.draft import Draft
from penstock.domain.message.outcome import Bury, HandlerOutcome, Retry, suspension_of
from penstock.worker.claimed_job import ClaimedJob

if TYPE_CHECKING:
    from opentelemetry.trace import Span

try:
    from opentelemetry import context, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
except ImportError:  # without tracing
    _has_api = False
else:
    _has_api = True
    _w3c = TraceContextTextMapPropagator()

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_MAX_CHARS = 1024  # of the stored context
_SYSTEM = "penstock"


class Consuming:
    """The span of a handler; it is given results, while exceptions pass through it anyway."""

    def __init__(self, span: Span | None = None) -> None:
        self._span = span

    def note_result(self, result: object) -> None:
        if self._span is not None and isinstance(result, Retry | Bury):
            _fail(self._span, result)


def check(given: str) -> str:
    """Return a valid stored context (traceparent, optional tracestate) or raise InvalidRequest."""
    parent, _, state = given.partition(" ")
    if not _TRACEPARENT.fullmatch(parent) or len(given) > _MAX_CHARS or "\n" in state:
        raise InvalidRequest(f"trace is a W3C traceparent, not {given[:100]!r}")
    return given


def current_trace() -> str | None:
    """The current span's context in stored form; None without tracing."""
    if not _has_api or not trace.get_current_span().get_span_context().is_valid:
        return None
    carrier: dict[str, str] = {}
    _w3c.inject(carrier)
    parent, state = carrier.get("traceparent"), carrier.get("tracestate")
    if parent is None:
        return None
    kept = f"{parent} {state}" if state else parent
    return kept if len(kept) <= _MAX_CHARS else parent


class Producing:
    """An enqueue in progress: the trace context to store, and the span that measures it."""

    def __init__(self, trace: str | None, span: Span | None = None) -> None:
        self.trace = trace
        self._span = span

    def sent(self, ids: Sequence[str]) -> None:
        if self._span is not None and len(ids) == 1:
            self._span.set_attribute("messaging.message.id", ids[0])


@contextmanager
def producing(destination: str, drafts: Sequence[Draft]) -> Iterator[Producing]:
    """A producer span around an enqueue or publish; without an SDK, only the current context."""
    if not _has_api or not _is_recording():
        yield Producing(current_trace())
        return
    with trace.get_tracer("penstock").start_as_current_span(
        f"send {destination}",
        kind=trace.SpanKind.PRODUCER,
        attributes=_producer_attributes(destination, drafts),
        record_exception=False,
        set_status_on_exception=False,
    ) as span:
        try:
            yield Producing(current_trace(), span)
        except BaseException as error:
            _fail(span, error)
            raise


def is_needed(job: ClaimedJob) -> bool:
    """Whether this job needs tracing: it carries a trace, or an SDK records spans."""
    return _has_api and (job.trace is not None or _is_recording())


@contextmanager
def consuming(job: ClaimedJob) -> Iterator[Consuming]:
    """The handler's span; with only OpenTelemetry's API, just the sender's context."""
    if not _has_api:
        yield Consuming()
        return
    sender = _sender(job.trace)
    if not _is_recording():
        token = context.attach(sender)
        try:
            yield Consuming()
        finally:
            context.detach(token)
        return
    with _span(job, sender) as span:
        try:
            yield Consuming(span)
        except BaseException as error:
            is_failure = not isinstance(error, HandlerOutcome) or isinstance(error, Retry | Bury)
            if is_failure and suspension_of(error) is None:
                _fail(span, error)
            raise


def _is_recording() -> bool:
    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def _span(job: ClaimedJob, sender: context.Context) -> AbstractContextManager[Span]:
    parent = trace.get_current_span(sender).get_span_context()
    is_first = job.attempts <= 1 and job.failures == 0
    links = [trace.Link(parent)] if parent.is_valid and not is_first else []
    links += [link for member in job.members if (link := _link_to(member.trace)) is not None]
    return trace.get_tracer("penstock").start_as_current_span(
        f"process {job.queue}",
        context=sender if is_first else context.Context(),
        kind=trace.SpanKind.CONSUMER,
        attributes=_attributes(job),
        links=links,
        record_exception=False,
        set_status_on_exception=False,
    )


def _sender(stored: str | None) -> context.Context:
    parent, _, state = (stored or "").partition(" ")
    carrier = {"traceparent": parent} | ({"tracestate": state} if state else {})
    return _w3c.extract(carrier, context=context.Context())


def _link_to(stored: str | None) -> trace.Link | None:
    """A chunk is a trace of its own, linked to the spans that enqueued its jobs."""
    sender = trace.get_current_span(_sender(stored)).get_span_context()
    return trace.Link(sender) if sender.is_valid else None


def _attributes(job: ClaimedJob) -> dict[str, Any]:
    about = {
        "messaging.system": _SYSTEM,
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": job.queue,
        "messaging.message.id": job.id,
        "messaging.message.body.size": len(job.body.encode()),
        "penstock.job.kind": job.kind,
        "penstock.job.attempts": job.attempts,
        "penstock.job.group": job.group,
        "penstock.job.entity_id": job.entity_id,
        "messaging.batch.message_count": len(job.members) or None,
    }
    return {name: value for name, value in about.items() if value is not None}


def _producer_attributes(destination: str, drafts: Sequence[Draft]) -> dict[str, Any]:
    about: dict[str, Any] = {
        "messaging.system": _SYSTEM,
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": destination,
    }
    if len(drafts) > 1:
        about["messaging.batch.message_count"] = len(drafts)
    kinds = {draft.kind for draft in drafts}
    if len(kinds) == 1 and None not in kinds:
        about["penstock.job.kind"] = kinds.pop()
    return about


def _fail(span: Span, error: BaseException) -> None:
    span.set_attribute("error.type", type(error).__qualname__)
    span.record_exception(error)
    span.set_status(trace.Status(trace.StatusCode.ERROR, str(error)))
