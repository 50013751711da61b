"""The native API as short calls, so that a test mentions only what matters to it."""

from __future__ import annotations

import itertools
import ssl
from collections.abc import Iterable
from typing import Any

import httpx

_numbers = itertools.count(1)
# By default each client would read all root certificates, which takes longer than most tests.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def a_name(start: str = "queue") -> str:
    """A unique name, so that tests can share a server."""
    return f"{start}-{next(_numbers)}"


class Api:
    """One client.  `call` returns any response; the other methods expect success."""

    def __init__(self, url: str, *, key: str | None = None) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        # Requests must not go through a proxy named in the environment.
        self.http = httpx.Client(
            base_url=url, headers=headers, timeout=30, trust_env=False, verify=NO_TLS
        )

    def call(
        self, method: str, path: str, body: Any = None, *, raw: bytes | None = None, **options: Any
    ) -> httpx.Response:
        if raw is not None:
            options.setdefault("headers", {"Content-Type": "application/json"})
            return self.http.request(method, path, content=raw, **options)
        if body is not None:
            options["json"] = body
        return self.http.request(method, path, **options)

    def get(self, path: str, **query: Any) -> Any:
        return ok(self.call("GET", path, params=query))

    def make_queue(self, start: str = "queue", **settings: Any) -> str:
        name = a_name(start)
        assert self.call("PUT", f"/v1/queues/{name}", settings).status_code == 201
        return name

    def send(self, queue: str, body: Any = "hello", **fields: Any) -> str:
        sent = ok(self.call("POST", f"/v1/queues/{queue}/messages", {"body": body, **fields}))
        return str(sent["id"])

    def send_many(self, queue: str, bodies: Iterable[Any]) -> None:
        """Send in one transaction."""
        drafts = [{"body": body} for body in bodies]
        ok(self.call("POST", f"/v1/queues/{queue}/messages/batch", {"messages": drafts}))

    def claim(self, queue: str, **wanted: Any) -> list[dict[str, Any]]:
        claimed = ok(self.call("POST", f"/v1/queues/{queue}/claims", wanted))
        return list(claimed["messages"])

    def claim_one(self, queue: str, **wanted: Any) -> dict[str, Any]:
        [message] = self.claim(queue, **wanted)
        return message

    def act(self, receipt: str, verb: str, **fields: Any) -> httpx.Response:
        return self.call("POST", f"/v1/leases/{receipt}/{verb}", fields or None)

    def queue(self, name: str) -> dict[str, Any]:
        return dict(self.get(f"/v1/queues/{name}"))

    def counts(self, name: str) -> dict[str, int]:
        """The current counts, without zeros."""
        return {state: n for state, n in self.queue(name)["counts"].items() if n}

    def message(self, message_id: str) -> dict[str, Any]:
        return dict(self.get(f"/v1/messages/{message_id}"))

    def die(self, queue: str, **draft: Any) -> str:
        """Send a message and bury it; returns its id."""
        message_id = self.send(queue, **draft)
        ok(self.act(self.claim_one(queue)["receipt"], "bury", reason="broken"))
        return message_id

    def finish(self, queue: str, **draft: Any) -> str:
        """Send a message, claim and complete it; returns its id."""
        message_id = self.send(queue, **draft)
        ok(self.act(self.claim_one(queue)["receipt"], "complete"))
        return message_id

    def close(self) -> None:
        self.http.close()


def ok(response: httpx.Response) -> Any:
    """Return the JSON of a response, which must be a success."""
    assert response.is_success, f"{response.status_code}: {response.text}"
    return response.json()


def assert_refused(response: httpx.Response, status: int, code: str) -> str:
    """Check the format of an error response; returns its text."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    text = response.json()["error"]["message"]
    assert response.json() == {"error": {"code": code, "message": text}}
    return str(text)
