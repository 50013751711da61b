"""An AweQ client, as used in AweQ's document."""

from __future__ import annotations

from typing import Any

import httpx

from tests.edge.api import NO_TLS


class AweqClient:
    """`address`: the client's own address; all of 127.0.0.0/8 is this machine."""

    def __init__(self, url: str, *, consumer: str = "", address: str = "127.0.0.1") -> None:
        headers = {"X-Aweq-Consumer": consumer} if consumer else {}
        self.http = httpx.Client(
            base_url=url,
            headers=headers,
            timeout=30,
            transport=httpx.HTTPTransport(local_address=address, verify=NO_TLS),
        )

    def send(self, message: Any) -> str:
        """Send a message; returns its key."""
        answer = self.http.post("/send-message", json={"message": message})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["key"])

    def receive(self, count: int | None = None) -> dict[str, Any]:
        query = {} if count is None else {"count": count}
        answer = self.http.get("/receive-message", params=query)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def texts(self, count: int | None = None) -> list[Any]:
        return [entry["message"] for entry in self.receive(count)["messages"]]

    def delete(self, key: str) -> bool:
        """Whether it ended a checkout; the response is the same in either case."""
        answer = self.http.delete(f"/delete-message/{key}")
        assert (answer.status_code, answer.text) == (200, '{"status":"okay"}')
        return answer.headers["x-aweq-deleted"] == "true"

    def stats(self) -> dict[str, Any]:
        answer = self.http.get("/get-stats")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def lengths(self) -> tuple[int, int]:
        """How many messages are queued, and how many are checked out."""
        stats = self.stats()["stats"]
        return stats["queue_length"], stats["checkouts_count"]

    def close(self) -> None:
        self.http.close()
