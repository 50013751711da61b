"""The curl commands of the docs page, executed without curl."""

from __future__ import annotations

import html
import re
import shlex
from typing import Any, NamedTuple

import httpx

from tests.edge.api import NO_TLS, Api, ok

_CARD = re.compile(
    r'<section class="card" id="op-(\w+)">.*?<pre[^>]*><code>(.*?)</code></pre>', re.DOTALL
)


class Command(NamedTuple):
    method: str
    url: str
    headers: dict[str, str]
    body: str | None

    def run(self) -> httpx.Response:
        with httpx.Client(trust_env=False, timeout=30, verify=NO_TLS) as client:
            return client.request(self.method, self.url, headers=self.headers, content=self.body)


def commands_of(page: str) -> dict[str, str]:
    """The commands by operation."""
    return {name: html.unescape(text) for name, text in _CARD.findall(page)}


def read(command: str, **variables: str) -> Command:
    program, *words = shlex.split(filled_in(command, variables).replace("\\\n", " "))
    assert program == "curl"
    method, url, headers, body = "", "", {}, None
    while words:
        match words.pop(0):
            case "-X":
                method = words.pop(0)
            case "-d":
                body = words.pop(0)
            case "-H":
                name, _, value = words.pop(0).partition(": ")
                headers[name] = value
            case word:
                assert not url, f"two URLs: {url} {word}"
                url = word
    return Command(method or ("GET" if body is None else "POST"), url, headers, body)


def filled_in(command: str, variables: dict[str, str]) -> str:
    """Expand variables as a shell does, but not in single quotes."""
    parts = command.split("'")
    for name, value in variables.items():
        parts[::2] = [part.replace(f"${name}", value) for part in parts[::2]]
    return "'".join(parts)


def prepare(api: Api, operation: str) -> dict[str, str]:
    """A queue "mail" with a ready message, a leased one, and one that suits the operation."""
    api.call("DELETE", "/v1/queues/mail", params={"force": "true"})
    if operation == "putQueue":
        return {}
    api.call("PUT", "/v1/queues/mail", {})
    _prepare_topic(api, operation)
    variables: dict[str, Any] = {"RECEIPT": "", "ID": "", "MOVE": ""}
    member = {"queue": "mail", "body": 1, "due_at": "2040-01-01T00:00:00Z"}
    flow = {"name": "nightly", "is_open": True, "members": [member]}
    variables["FLOW"] = ok(api.call("POST", "/v1/flows", flow))["flow"]["id"]
    variables["WORKER"] = ok(api.call("POST", "/v1/workers"))["id"]
    variables["TASK"] = ok(api.call("POST", "/v1/tasks", {"jobKind": "SendReport"}))["id"]
    if operation in ("setTaskOutcome", "setTaskProgress"):
        path = f"/v1/workers/{variables['WORKER']}/dequeue"
        variables["TASK"] = ok(api.call("POST", path))["id"]
    if operation == "revokeKey":
        made = ok(api.call("POST", "/v1/keys", {"name": "old", "roles": ["read"]}))
        variables["KEY"] = made["key"]["id"]
    if operation in ("getMove", "cancelMove"):
        api.die("mail")
        variables["MOVE"] = ok(api.call("POST", "/v1/queues/mail/moves"))["id"]
    if operation == "applyAdvice":
        ok(api.call("DELETE", "/v1/breaker"))
    if operation.endswith("Recurring"):
        ok(api.call("PUT", "/v1/recurring/nightly", {"queue": "mail", "cron": "30 2 * * *"}))
    rules = {"/shop/(.*)": {"url": "http://127.0.0.1:9/$1"}}
    [route] = ok(api.call("PUT", "/v1/routes", {"rules": rules}))["routes"]
    variables["CIRCUIT"] = route["circuit"]
    ok(api.call("POST", f"/v1/circuits/{route['circuit']}/open"))
    if operation != "sendSignal":
        ok(api.call("POST", "/v1/signals/orders.17.approved", {}))
    api.send("mail")
    variables["RECEIPT"] = api.claim_one("mail")["receipt"]
    if operation in ("redriveMessage", "redriveQueue"):
        variables["ID"] = api.die("mail")
    else:
        variables["ID"] = api.send("mail", due_at="2040-01-01T00:00:00Z")
        api.send("mail")
    return variables


def _prepare_topic(api: Api, operation: str) -> None:
    """A topic "orders" with a subscription "mailer", unless the operation creates it."""
    api.call("DELETE", "/v1/topics/orders", params={"force": "true"})
    api.call("DELETE", "/v1/queues/orders.mailer", params={"force": "true"})
    if operation not in ("putTopic", "putSubscription"):
        api.call("PUT", "/v1/topics/orders/subscriptions/mailer", {})
