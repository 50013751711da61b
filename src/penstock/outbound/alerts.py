"""Alerts: always to the log, and as a JSON document to an endpoint if one is set."""

from __future__ import annotations

import logging

import msgspec

from penstock.domain.scaling.pressure import Alert
from penstock.ports.sender import PushRequest, PushResponse, Sender

_log = logging.getLogger("penstock.alerts")

TIMEOUT_MS = 10_000
_HEADERS = (("Content-Type", "application/json"), ("User-Agent", "penstock"))


class LoggedAlerts:
    def send(self, alert: Alert) -> None:
        _log.warning("%s", alert.text)


class EndpointAlerts:
    """Posts the alert; chat services show its `text`, the other fields are for programs."""

    def __init__(self, url: str, sender: Sender) -> None:
        self._url = url
        self._sender = sender
        self._logged = LoggedAlerts()

    def send(self, alert: Alert) -> None:
        self._logged.send(alert)
        request = PushRequest(
            method="POST",
            url=self._url,
            headers=_HEADERS,
            payload=msgspec.json.encode(alert),
            timeout_ms=TIMEOUT_MS,
        )
        self._sender.send(request, self._log_failure)

    def _log_failure(self, response: PushResponse) -> None:
        if response.status is None or not 200 <= response.status < 300:
            why = response.error or f"it answered {response.status}"
            # Without the address, which may contain a secret, as the addresses of chats do.
            _log.error("an alert could not be sent to its endpoint: %s", why)
