"""A gateway in the manner of gateleen: requests wait in queues while their backend is down.

python -m tests.stories.gateway backend PORT        the backend, which writes down what it gets
python -m tests.stories.gateway send QUEUES COUNT   sends COUNT requests for each queue
"""

from __future__ import annotations

import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx

FOLDER = Path(os.environ["STORY_FOLDER"])


class Backend(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        with (FOLDER / "did").open("a") as file:
            file.write(f"{self.path}\n")
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """It writes down enough already."""


def serve(port: int) -> None:
    ThreadingHTTPServer(("127.0.0.1", port), Backend).serve_forever()


def send(queues: int, count: int) -> None:
    """Every request until the gateway has accepted it: a second try is dropped as a duplicate."""
    with httpx.Client(base_url=os.environ["STORY_SERVER"], trust_env=False) as gateway:
        for number in range(count):
            for queue in range(queues):
                while not _is_accepted(gateway, f"shop-{queue}", number):
                    threading.Event().wait(0.1)


def _is_accepted(gateway: httpx.Client, queue: str, number: int) -> bool:
    headers = {"x-queue": queue, "x-duplicate-check": "600"}
    try:
        answer = gateway.put(f"/push/shop/{queue}/{number}", json=number, headers=headers)
    except httpx.TransportError:
        return False
    return answer.status_code == httpx.codes.ACCEPTED


if __name__ == "__main__":
    if sys.argv[1] == "backend":
        serve(int(sys.argv[2]))
    else:
        send(int(sys.argv[2]), int(sys.argv[3]))
