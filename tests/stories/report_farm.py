"""A farm of report workers in the manner of Izenda: any program that speaks HTTP can be one.

    python -m tests.stories.report_farm NAME

It registers, sends a ping while it works, and reports how each task ended. A worker that is not
valid any more abandons its work and registers again.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import httpx

FOLDER = Path(os.environ["STORY_FOLDER"])
PING_S = 0.3
GONE = httpx.codes.CONFLICT


class Worker:
    def __init__(self, name: str) -> None:
        self.name = name
        self._http = httpx.Client(base_url=os.environ["STORY_SERVER"], trust_env=False, timeout=30)
        self._id = ""
        self._is_gone = threading.Event()

    def run(self) -> None:
        self._register()
        threading.Thread(target=self._ping, daemon=True).start()
        while True:
            try:
                path = f"/v1/workers/{self._id}/dequeue"
                answer = self._http.post(path, json={"wait_ms": 1_000})
            except httpx.TransportError:
                # The lost answer may have been a task, which our pings would keep for ever.
                self._register()
                continue
            if answer.status_code == GONE or self._is_gone.is_set():
                self._register()
            elif answer.is_success and answer.json() is not None:
                self._do(answer.json())

    def _do(self, task: dict[str, Any]) -> None:
        self._note(f"begin {task['jobData']} {os.getpid()}")
        gate = FOLDER / f"gate-{task['jobData']}"
        while task["jobKind"] == "Slow" and not gate.exists():
            threading.Event().wait(0.02)
        if self._is_gone.is_set():
            return  # another worker has the task by now
        outcome = "Failed" if task["jobKind"] == "Broken" else "Succeeded"
        body = {"outcome": outcome, "workerId": self._id}
        answer = self._call(f"/v1/tasks/{task['id']}/outcome", body)
        if answer.is_success:
            self._note(f"end {task['jobData']}")

    def _register(self) -> None:
        answer = self._call("/v1/workers", {"name": self.name})
        self._id = answer.raise_for_status().json()["id"]
        self._is_gone.clear()

    def _ping(self) -> None:
        while True:
            threading.Event().wait(PING_S)
            worker = self._id
            is_alive = self._call(f"/v1/workers/{worker}/alive").text != "false"
            if not is_alive and worker == self._id:
                self._is_gone.set()

    def _call(self, path: str, body: dict[str, Any] | None = None) -> httpx.Response:
        """Until the server answers: it may be restarted meanwhile."""
        while True:
            try:
                return self._http.post(path, json=body)
            except httpx.TransportError:
                threading.Event().wait(0.1)

    def _note(self, text: str) -> None:
        with (FOLDER / "did").open("a") as file:
            file.write(f"{text}\n")


if __name__ == "__main__":
    Worker(sys.argv[1]).run()
