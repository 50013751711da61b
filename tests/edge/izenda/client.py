"""Short calls of Izenda's API."""

from __future__ import annotations

from typing import Any

import httpx

from tests.edge.api import Api, ok


class IzendaClient:
    """A producer and workers that use only Izenda's five calls."""

    def __init__(self, api: Api) -> None:
        self.api = api

    def enqueue(self, kind: str = "Report", entity: str | None = "e1", data: Any = "all") -> str:
        body = {"jobKind": kind, "jobEntityId": entity, "jobData": data}
        return str(ok(self.api.call("POST", "/v1/tasks", body))["id"])

    def register(self, **about: Any) -> str:
        return str(ok(self.api.call("POST", "/v1/workers", about or None))["id"])

    def is_alive(self, worker: str) -> bool:
        answer = self.api.call("POST", f"/v1/workers/{worker}/alive")
        assert answer.content in (b"true", b"false")
        return answer.content == b"true"

    def ask(self, worker: str, **wanted: Any) -> httpx.Response:
        return self.api.call("POST", f"/v1/workers/{worker}/dequeue", wanted or None)

    def dequeue(self, worker: str, **wanted: Any) -> Any:
        return ok(self.ask(worker, **wanted))

    def take(self, worker: str, **wanted: Any) -> str:
        return str(self.dequeue(worker, **wanted)["id"])

    def report(self, task: str, outcome: str, worker: str) -> httpx.Response:
        body = {"outcome": outcome, "workerId": worker}
        return self.api.call("POST", f"/v1/tasks/{task}/outcome", body)

    def task(self, task: str) -> dict[str, Any]:
        return dict(self.api.get(f"/v1/tasks/{task}"))

    def status(self, task: str) -> str:
        return str(self.task(task)["status"])
