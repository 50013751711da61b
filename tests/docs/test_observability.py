"""The programs of docs/observability.md report to structlog, Sentry and OpenTelemetry."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.snippets import ROOT, read_blocks
from tests.support.http_backend import HttpBackend

PAGE = "docs/observability.md"


@pytest.fixture
def collector() -> Iterator[HttpBackend]:
    """What Sentry and OpenTelemetry send their data to."""
    with HttpBackend() as backend:
        yield backend


def work(mark: str, folder: Path, **variables: str) -> str:
    """Enqueue a job of the program, run a worker, and return what it writes to stderr."""
    (folder / "jobs.py").write_text(read_blocks(PAGE, mark), encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{folder}"} | variables
    enqueue = "import jobs; jobs.send_mail.enqueue('ada'); jobs.app.close()"
    subprocess.run([sys.executable, "-c", enqueue], cwd=folder, env=environment, check=True)
    worker = [sys.executable, "-m", "penstock", "worker", "jobs:app", "--burst"]
    done = subprocess.run(
        worker, cwd=folder, env=environment, check=True, capture_output=True, text=True
    )
    return done.stderr


def test_structlog_writes_json_with_the_job(tmp_path: Path) -> None:
    lines = [line for line in work("structlog", tmp_path).splitlines() if line.startswith("{")]

    [written] = [json.loads(line) for line in lines]
    assert (written["event"], written["to"], written["level"]) == ("mail sent", "ada", "info")
    assert (written["kind"], written["queue"], written["attempt"]) == ("send_mail", "mail", 1)
    assert len(written["job"]) == 36


def test_sentry_gets_the_exception_with_the_job(tmp_path: Path, collector: HttpBackend) -> None:
    dsn = f"http://key@127.0.0.1:{collector.port}/1"

    work("sentry", tmp_path, SENTRY_DSN=dsn)

    text = b"".join(_decoded(one.payload) for one in collector.seen).decode()
    [event] = [json.loads(line) for line in text.splitlines() if '"exception"' in line]
    assert event["exception"]["values"][-1]["type"] == "ConnectionError"
    assert event["transaction"] == "mail/send_mail"
    assert (event["tags"]["kind"], str(event["tags"]["attempt"])) == ("send_mail", "1")


def test_opentelemetry_gets_the_span_and_the_duration(
    tmp_path: Path, collector: HttpBackend
) -> None:
    endpoint = f"http://127.0.0.1:{collector.port}"

    work("opentelemetry", tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=endpoint)

    sent = {one.target: _decoded(one.payload) for one in collector.seen}
    assert b"process mail" in sent["/v1/traces"]
    assert b"mail.to" in sent["/v1/traces"]
    assert b"messaging.process.duration" in sent["/v1/metrics"]
    assert b"shop-worker" in sent["/v1/metrics"]


def _decoded(payload: bytes) -> bytes:
    try:
        return zlib.decompress(payload, wbits=zlib.MAX_WBITS | 32)
    except zlib.error:  # not compressed
        return payload
