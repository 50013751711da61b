"""Traces that continue in the job, with OpenTelemetry's own SDK."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from penstock import Bury, Retry, Snooze, current, sleep_sync
from penstock.client.jobs import tracing
from penstock.domain.errors import InvalidRequest, QueueFull
from tests.docs.snippets import ROOT
from tests.worker.test_outcomes import some_job

PARENT = "00-" + "1" * 32 + "-" + "2" * 16 + "-01"


@pytest.fixture(scope="session")
def exporter() -> InMemorySpanExporter:
    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    trace.set_tracer_provider(provider)  # for the whole process; it can be set only once
    return kept


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> Iterator[InMemorySpanExporter]:
    exporter.clear()
    yield exporter
    exporter.clear()


@pytest.fixture
def handled(spans):
    """The spans of handlers, in the order they ended."""

    def find() -> list[ReadableSpan]:
        return [s for s in spans.get_finished_spans() if s.kind is SpanKind.CONSUMER]

    return find


@pytest.fixture
def produced(spans):
    """The spans of enqueues and publishes, in the order they ended."""

    def find() -> list[ReadableSpan]:
        return [s for s in spans.get_finished_spans() if s.kind is SpanKind.PRODUCER]

    return find


def test_an_enqueue_is_a_producer_span_and_the_first_attempt_its_child(
    app, queue, driver, handled, produced
):
    seen = []

    @app.job(queue=queue, kind="mail")
    def mail() -> None:
        seen.append(trace.get_current_span().get_span_context().span_id)

    with trace.get_tracer("test").start_as_current_span("request") as request:
        sent = mail.enqueue()
    driver.run_due()

    [span], [producer] = handled(), produced()
    assert producer.parent is not None
    assert producer.parent.span_id == request.get_span_context().span_id
    assert producer.name == f"send {queue}"
    assert dict(producer.attributes or {}) == {
        "messaging.system": "penstock",
        "messaging.operation.name": "send",
        "messaging.operation.type": "send",
        "messaging.destination.name": queue,
        "messaging.message.id": sent.id,
        "penstock.job.kind": "mail",
    }
    assert span.parent is not None
    assert span.parent.span_id == producer.context.span_id
    assert span.context.trace_id == request.get_span_context().trace_id
    assert seen == [span.context.span_id]
    assert span.name == f"process {queue}"
    assert span.links == ()
    assert dict(span.attributes or {}) == {
        "messaging.system": "penstock",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": queue,
        "messaging.message.id": sent.id,
        "messaging.message.body.size": 2,
        "penstock.job.kind": "mail",
        "penstock.job.attempts": 1,
    }


def test_a_batch_and_an_event_are_one_producer_span_each(app, queue, produced):
    @app.job(queue=queue, kind="mail")
    def mail() -> None: ...

    mail.enqueue_many([{}, {}])
    app.publish(queue, 1)

    batch, event = produced()
    assert batch.attributes["messaging.batch.message_count"] == 2
    assert event.name == f"send {queue}"


def test_a_refused_enqueue_is_an_error_of_its_producer_span(app, queue, produced):
    app.queue(queue, max_messages=1)
    app.enqueue("mail", {}, queue=queue)

    with pytest.raises(QueueFull):
        app.enqueue("mail", {}, queue=queue)

    assert [span.status.status_code for span in produced()] == [StatusCode.UNSET, StatusCode.ERROR]


def test_later_attempts_are_traces_of_their_own_with_a_link(app, queue, driver, handled, produced):
    @app.job(queue=queue, backoff="0s")
    def mail() -> None:
        if current().attempts < 3:
            raise ValueError("no")

    with trace.get_tracer("test").start_as_current_span("request") as request:
        mail.enqueue()
    for _ in range(3):
        driver.run_due()

    first, second, third = handled()
    assert first.context.trace_id == request.get_span_context().trace_id
    [producer] = produced()
    came_from = producer.context
    assert first.context.trace_id == came_from.trace_id
    assert len({span.context.trace_id for span in (first, second, third)}) == 3
    for retry in (second, third):
        assert retry.parent is None
        assert [link.context.span_id for link in retry.links] == [came_from.span_id]


def test_a_job_may_enqueue_another_in_the_same_trace(app, queue, driver, handled, produced):
    @app.job(queue=queue)
    def first() -> None:
        second.enqueue()

    @app.job(queue=queue)
    async def second() -> None: ...

    first.using(trace=PARENT).enqueue()
    driver.run_due()
    driver.run_due()

    one, two = handled()
    assert f"{one.context.trace_id:032x}" == "1" * 32
    by_id = {span.context.span_id: span for span in produced()}
    assert by_id[two.parent.span_id].parent.span_id == one.context.span_id


def test_the_span_of_a_failed_job_has_its_error(app, queue, driver, handled):
    outcomes = {"raise": ValueError("no"), "bury": Bury("bad"), "retry": Retry(error="451")}

    @app.job(queue=queue)
    def mail(how: str, is_raised: bool) -> object:
        if is_raised:
            raise outcomes[how]
        return outcomes[how]

    for how, is_raised in (("raise", True), ("bury", True), ("bury", False), ("retry", False)):
        mail.enqueue(how, is_raised)
    driver.run_due()

    assert {span.status.status_code for span in handled()} == {StatusCode.ERROR}
    assert [(s.attributes["error.type"], s.status.description) for s in handled()] == [
        ("ValueError", "no"),
        ("Bury", "bad"),
        ("Bury", "bad"),
        ("Retry", "451"),
    ]


def test_a_job_that_only_postpones_itself_has_not_failed(app, queue, driver, handled):
    @app.job(queue=queue)
    def mail() -> None:
        raise Snooze("1m")

    mail.enqueue()
    driver.run_due()

    [span] = handled()
    assert span.status.status_code is StatusCode.UNSET
    assert span.events == ()


def test_a_job_that_suspends_itself_has_not_failed(app, queue, driver, handled):
    @app.job(queue=queue)
    def remind() -> None:
        sleep_sync("1h")

    remind.enqueue()
    driver.run_due()

    [span] = handled()
    assert span.status.status_code is StatusCode.UNSET
    assert not span.events


def test_a_trace_can_be_given_by_hand_and_is_checked(app, queue, driver, handled):
    @app.job(queue=queue)
    def mail() -> None: ...

    mail.using(trace=f"{PARENT} vendor=1").enqueue()
    [work] = driver.claim()

    assert work.trace == f"{PARENT} vendor=1"
    driver.act_of(work)
    [span] = handled()
    assert span.context.trace_state["vendor"] == "1"
    for wrong in ("", "hello", "00-1-2-3", PARENT + "x", PARENT.upper() + " a=b" * 400):
        with pytest.raises(InvalidRequest, match="traceparent"):
            mail.using(trace=wrong)


def test_without_a_current_span_the_producer_span_begins_a_trace(app, queue, driver, produced):
    app.enqueue("mail", {}, queue=queue)

    [work] = driver.claim()

    [span] = produced()
    assert span.parent is None
    assert f"-{span.context.span_id:016x}-" in work.trace
    assert tracing.current_trace() is None


@pytest.mark.no_store("codec")
def test_an_invalid_stored_trace_is_ignored(handled):
    with tracing.consuming(some_job(trace="nonsense")):
        pass

    [span] = handled()
    assert span.parent is None


@pytest.mark.no_store("process")
def test_with_the_api_alone_there_are_no_spans_but_the_trace_continues(tmp_path):
    _run(
        f"""
from penstock.client.jobs import tracing
from tests.worker.test_outcomes import some_job
with tracing.consuming(some_job(trace={PARENT!r})):
    with tracing.producing("mail", []) as span:
        assert span.trace == {PARENT!r}
        span.sent(["1"])
with tracing.producing("mail", []) as span:
    assert span.trace is None
assert tracing.current_trace() is None
""",
        tmp_path,
    )


@pytest.mark.no_store("process")
def test_it_works_without_opentelemetry(tmp_path):
    _run(
        f"""
import sys
sys.modules["opentelemetry"] = None
from penstock import Penstock
from penstock.client.jobs import tracing
from tests.worker.test_outcomes import some_job
with tracing.consuming(some_job(trace={PARENT!r})) as span:
    span.note_result(None)
assert tracing.current_trace() is None
assert not tracing.is_needed(some_job(trace={PARENT!r}))
app = Penstock("sqlite:///{tmp_path}/jobs.db")
app.enqueue("mail", {{}}, trace={PARENT!r})
app.close()
""",
        tmp_path,
    )


def _run(program: str, folder: Path) -> None:
    env = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    subprocess.run([sys.executable, "-c", program], check=True, env=env, cwd=folder)
