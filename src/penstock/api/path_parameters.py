"""The parameters in the paths of operations."""

from __future__ import annotations

from typing import Any

import msgspec

_TEXT = {"type": "string"}
_UUID = {"type": "string", "format": "uuid"}
_NAME = {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}$"}
_TOPIC_NAME = {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,77}$"}


class PathParameter(msgspec.Struct, frozen=True):
    text: str
    schema: dict[str, Any]
    example: str = ""  # a value that works; ids have none


PATH_PARAMETERS = {
    "circuit": PathParameter("The hash of the circuit.", _TEXT),
    "fleet": PathParameter("The name of the fleet.", _TEXT, "mail"),
    "id": PathParameter("The id of the message.", _UUID),
    "move": PathParameter("The id of the move.", _UUID),
    "queue": PathParameter("The name of the queue.", _NAME, "mail"),
    "receipt": PathParameter("The receipt returned by the claim.", _TEXT),
    "schedule": PathParameter("The name of the recurring work.", _NAME, "nightly"),
    "subscription": PathParameter("The name of the subscription.", _TOPIC_NAME, "mailer"),
    "table": PathParameter(
        "The name of the table.", {"type": "string", "pattern": "^[a-z][a-z0-9_]*$"}, "slo"
    ),
    "task": PathParameter("The id of the task.", _UUID),
    "topic": PathParameter("The name of the topic.", _TOPIC_NAME, "orders"),
    "worker": PathParameter("The id of the worker.", _TEXT),
}
