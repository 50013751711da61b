"""Alerts: always in the log, and at an endpoint if one is set."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import msgspec
import pytest

from penstock.domain.scaling.pressure import Alert
from penstock.outbound.alerts import EndpointAlerts, LoggedAlerts
from penstock.outbound.clock import SystemClock
from penstock.outbound.http_sender import HttpSender
from tests.clocks import NOON
from tests.support.http_backend import HttpBackend
from tests.support.waiting import eventually

ALERT = Alert(
    source="bunny", what="memory", level=2, value=81.5, text="81.50 % of the memory", at=NOON
)


@pytest.fixture
def backend() -> Iterator[HttpBackend]:
    with HttpBackend() as backend:
        yield backend


@pytest.fixture
def sender() -> Iterator[HttpSender]:
    sender = HttpSender(SystemClock(), connections=10, keep_alive_ms=4_000)
    yield sender
    sender.close()


def test_an_alert_is_in_the_log(caplog):
    LoggedAlerts().send(ALERT)

    [record] = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.WARNING, "81.50 % of the memory")


def test_an_alert_is_posted_as_json_with_a_text_that_chats_show(backend, sender, caplog):
    EndpointAlerts(f"{backend.url}/hooks/1", sender).send(ALERT)

    [seen] = backend.wait_for(1)
    assert (seen.method, seen.target) == ("POST", "/hooks/1")
    assert seen.header("content-type") == "application/json"
    assert msgspec.json.decode(seen.payload, type=Alert) == ALERT
    assert "81.50 % of the memory" in caplog.text


@pytest.mark.parametrize("trouble", ["refuses", "is away"])
def test_an_endpoint_that_rejects_an_alert_is_logged_without_its_address(
    backend, sender, caplog, trouble
):
    backend.answer(500)
    if trouble == "is away":
        backend.stop()

    EndpointAlerts(f"{backend.url}/hooks/s3cret", sender).send(ALERT)

    eventually(lambda: "could not be sent" in caplog.text)
    assert "s3cret" not in caplog.text
