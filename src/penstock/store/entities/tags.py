"""Messages by their tags, and changes to them while they wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.domain.errors import InvalidRequest
from penstock.domain.message import lifecycle
from penstock.domain.message.draft import NewMessage
from penstock.domain.message.lifecycle import LIVE, QUEUED, Content, Message, State
from penstock.ports.topics import Rewrite, Tagged
from penstock.store.entities.entity import MessageEntity, params_of
from penstock.store.verbs.lock_order import NO_LOCK
from penstock.store.verbs.transaction_state import message_of

_STATES = {
    LIVE: "live",
    QUEUED: "queued",
    frozenset({State.LEASED}): "leased",
}


class SqlTagged(MessageEntity):
    def find(self, wanted: Tagged) -> list[Message]:
        return self._find(wanted, NO_LOCK)

    def contents(self, messages: Sequence[Message]) -> dict[int, Content]:
        return self._claims.contents(list(messages))

    def cancel(self, wanted: Tagged, *, queue_no: int, reason: str | None, now: int) -> int:
        of_queue = msgspec.structs.replace(
            wanted, queue_no=queue_no, states=(State.WAITING, State.READY)
        )
        found = self._lock_order.lock_all(
            queue_no, lambda lock: self._find(of_queue, lock), now=now
        )
        # A message may have been claimed while we waited for its lock.
        found = [message for message in found if message.state in QUEUED]
        for before in found:
            self._changes.note(before, lifecycle.cancel(before, reason=reason), now=now)
        self._changes.save()
        return len(found)

    def rewrite(self, message_id: str, change: Rewrite, *, now: int) -> Message:
        before = self._lock_order.lock_one(message_id, now=now)
        content = self.contents([before])[before.message_no]
        new = change(before, content, self._transaction.queue(before.queue_no))
        after = self._changes.note(before, new.message, now=now)
        self._changes.save()
        day = self._transaction.partitions.ensure(after.body_day)
        self._db.run("tags.put_body", _body(new), day=day)
        self._db.run("tags.relabel", _labels(after))
        return after

    def _find(self, wanted: Tagged, lock: str) -> list[Message]:
        if wanted.tag is not None:
            return self._either(wanted, lock)
        if wanted.tag1 is None and wanted.tag2 is None:
            raise InvalidRequest("a tag is required: set tag, tag1 or tag2")
        params: dict[str, Any] = {
            "after_no": wanted.after_no,
            "due_from": wanted.due_from,
            "due_before": wanted.due_before,
            "limit": wanted.limit,
        }
        conditions = [f"where_{_STATES[frozenset(wanted.states)]}"]
        for name in ("tag1", "tag2", "queue_no"):
            value = getattr(wanted, name)
            if value is not None:
                params[name] = value
                conditions.append(f"where_{name}")
        texts = [self._db.text(f"tags.{name}") for name in conditions]
        filled = "\n   ".join(texts)
        rows = self._db.rows("tags.find", params, conditions=filled, lock=lock)
        return list(map(message_of, rows))

    def _either(self, wanted: Tagged, lock: str) -> list[Message]:
        """One lookup in each index; a message may have the same tag twice."""
        found: dict[int, Message] = {}
        for name in ("tag1", "tag2"):
            one = msgspec.structs.replace(wanted, tag=None, **{name: wanted.tag})
            found |= {m.message_no: m for m in self._find(one, lock)}
        return [found[no] for no in sorted(found)][: wanted.limit]


def _body(new: NewMessage) -> dict[str, Any]:
    attributes = new.content.attributes
    return {
        "message_no": new.message.message_no,
        "body": new.content.body,
        "attributes": msgspec.json.encode(attributes).decode() if attributes else None,
        "trace": new.content.trace,
    }


def _labels(message: Message) -> dict[str, Any]:
    return params_of(message, ("message_no", "kind", "tag1", "tag2", "size", "body_day"))
