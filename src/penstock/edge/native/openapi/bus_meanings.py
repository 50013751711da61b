"""What the path parameters of topics and subscriptions mean."""

from __future__ import annotations

from typing import Any

_NAME = {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,77}$"}

PARAMETERS: dict[str, tuple[str, dict[str, Any], str]] = {
    "subscription": ("The subscription's name.", _NAME, "mailer"),
    "topic": ("The topic's name.", _NAME, "orders"),
}
