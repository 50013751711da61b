"""Logs of attempts, as a worker keeps them and an operator reads them."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.api.jobs import attempt_logs
from penstock.api.jobs.attempt_logs import KeepLogs, LogPart, MessageLogs, ReadLogs
from penstock.client.resources.resource import ResourceClient


class AttemptLogClient(ResourceClient):
    def keep(self, parts: Sequence[LogPart]) -> list[str]:
        """For each part `kept`, or the code of its error."""
        kept = self._request(attempt_logs.KEEP, KeepLogs(list(parts)))
        return kept.results

    def of(self, message_id: str, *, limit: int = 1_000, cursor: str | None = None) -> MessageLogs:
        """What the attempts of one message have logged, after the `next` of a former answer."""
        query = ReadLogs(limit=limit, cursor=cursor)
        return self._request(attempt_logs.READ, query=query, id=message_id)
