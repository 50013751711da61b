"""Looking up a job's message in the store, live or dead; None when it is done."""

from __future__ import annotations

from typing import Any

from penstock import Penstock
from penstock.domain.message.lifecycle import Message
from penstock.services.messages import MessageView
from tests.support.waiting import eventually

PATIENCE_S = 60.0


def message(app: Penstock, message_id: str) -> Message | None:
    backend: Any = app._lazy_backend.get()
    found: Message | None = backend.broker.messages.find(message_id).result()
    return found


def view(app: Penstock, message_id: str) -> MessageView:
    backend: Any = app._lazy_backend.get()
    found: MessageView = backend.broker.messages.get(message_id).result()
    return found


def soon_dead(app: Penstock, message_id: str) -> Message:
    def look() -> Message | None:
        found = message(app, message_id)
        return found if found is not None and found.state == "dead" else None

    return eventually(look, within_s=PATIENCE_S)  # type: ignore[return-value]
