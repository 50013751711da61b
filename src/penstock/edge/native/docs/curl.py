"""Render an operation as a shell command that can be run as printed."""

from __future__ import annotations

from typing import Any

import msgspec

BASE = "{base}"  # replaced, when the page is served, with the address that the browser used
KEY_HEADER = '-H "authorization: Bearer $PENSTOCK_KEY"'

# Placeholders for values that an earlier command returned.
VARIABLES = {
    "circuit": "$CIRCUIT",
    "id": "$ID",
    "flow": "$FLOW",
    "move": "$MOVE",
    "receipt": "$RECEIPT",
    "task": "$TASK",
    "key": "$KEY",
    "worker": "$WORKER",
}

FIRST_STEPS = f"""\
# create a queue
curl -X PUT {BASE}/v1/queues/mail

# send a message, and keep its id
ID=$(curl -s {BASE}/v1/queues/mail/messages \\
  -H 'content-type: application/json' -d '{{"body": {{"to": "ada@example.org"}}}}' |
  sed 's/.*"id":"\\([^"]*\\)".*/\\1/')

# claim it, and keep the receipt
RECEIPT=$(curl -s -X POST {BASE}/v1/queues/mail/claims |
  sed 's/.*"receipt":"\\([^"]*\\)".*/\\1/')

# handled: complete it
curl -X POST {BASE}/v1/leases/$RECEIPT/complete
"""


def example(method: str, path: str, operation: dict[str, Any], *, with_key: bool) -> str:
    body = _body(operation)
    lines = [f"{_verb(method, has_body=body is not None)}{_url(path, operation)}"]
    if with_key and "security" in operation:
        lines.append(KEY_HEADER)
    if body is not None:
        lines.append(f"-H 'content-type: application/json' -d {body}")
    return " \\\n  ".join(lines)


def first_steps(*, with_key: bool) -> str:
    if not with_key:
        return FIRST_STEPS
    return FIRST_STEPS.replace("curl ", f"curl {KEY_HEADER} ")


def _verb(method: str, *, has_body: bool) -> str:
    usual = "POST" if has_body else "GET"
    return "curl " if method == usual else f"curl -X {method} "


def _url(path: str, operation: dict[str, Any]) -> str:
    values = {p["name"]: _text(p.get("example", "")) for p in operation["parameters"]}
    for name, value in (values | VARIABLES).items():
        path = path.replace(f"{{{name}}}", value)
    in_query = [p["name"] for p in operation["parameters"] if p["in"] == "query"]
    query = "&".join(f"{name}={values[name]}" for name in in_query if values[name])
    if not query:
        return f"{BASE}{path}"
    mark = '"' if "$" in path else "'"  # the shell expands no variables in single quotes
    return f"{mark}{BASE}{path}?{query}{mark}"


def url_of(path: str, operation: dict[str, Any]) -> tuple[str, list[str]]:
    """The URL for Python, with names in braces for what has no example, and these names."""
    values = {p["name"]: _text(p.get("example", "")) for p in operation["parameters"]}
    unknown = []
    for name in values:
        if f"{{{name}}}" in path and name in VARIABLES:
            unknown.append(name)
        else:
            path = path.replace(f"{{{name}}}", values[name])
    return f"{BASE}{path}", unknown


def _body(operation: dict[str, Any]) -> str | None:
    content = operation.get("requestBody", {}).get("content", {})
    value = content.get("application/json", {}).get("example")
    if value is None:
        return None
    text = msgspec.json.format(msgspec.json.encode(value), indent=0).decode()
    quoted = "'" + text.replace("'", "'\\''") + "'"
    for variable in VARIABLES.values():  # the shell expands no variables in single quotes
        quoted = quoted.replace(f'"{variable}"', f"\"'{variable}'\"")
    return quoted


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
