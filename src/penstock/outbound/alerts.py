"""Alerts: to the log in any case, and as a JSON document to an endpoint if there is one."""

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
    """`text` is what chats show of it; the rest is for programs."""

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
        self._sender.send(request, self._told)

    def _told(self, response: PushResponse) -> None:
        if response.status is None or not 200 <= response.status < 300:
            why = response.error or f"it answered {response.status}"
            # The address may hold a secret, as those of chats do.
            _log.error("an alert could not be told to its endpoint: %s", why)
