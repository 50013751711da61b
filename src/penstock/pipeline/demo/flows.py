"""The demo's flows: reports are made in groups, and the last one of a group sums up the others."""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa

from penstock.domain.flow.flow import FLOW_ENDED
from penstock.pipeline.demo.columns import ids, texts
from penstock.pipeline.demo.scenario import DONE, QUEUES, DemoMessages, Ints

MEMBERS = 20
_QUEUE = next(number for number, queue in enumerate(QUEUES) if queue.name == "reports")
_NAME = "reports"
_SALT = 1 << 40  # ids of flows differ from those of messages


class DemoFlows:
    """`past`: the endings of a day, sorted by end."""

    def __init__(self, past: DemoMessages) -> None:
        self._past = past
        members = np.flatnonzero(past.queue == _QUEUE)
        self._groups = [
            members[start : start + MEMBERS] for start in range(0, len(members), MEMBERS)
        ]

    def columns(self) -> dict[str, pa.Array]:
        """Columns of history."""
        past, rows = self._past, len(self._past.message_no)
        flow = np.full(rows, -1, dtype=np.int64)
        last: list[str | None] = [None] * rows
        for number, group in enumerate(self._groups):
            flow[group] = number
            last[group[-1]] = self._parents(group)
        is_member = flow >= 0
        numbers = np.array([self._no(group) for group in self._groups], dtype=np.int64)
        names = [*(f"report-{n}" for n in range(MEMBERS)), "sum"]
        nth = np.full(rows, -1, dtype=np.int64)
        for group in self._groups:
            nth[group] = np.arange(len(group))
            nth[group[-1]] = MEMBERS
        return {
            "flow_no": pa.array(
                numbers[flow] if len(numbers) else np.zeros(rows, np.int64), mask=~is_member
            ),
            "flow_id": texts([self._id(group) for group in self._groups], flow),
            "flow_name": texts((_NAME,), np.where(is_member, 0, -1)),
            "flow_role": texts(("member",), np.where(is_member, 0, -1)),
            "member_name": texts(names, nth),
            "flow_parents": pa.array(last, pa.string()),
            "result_size": pa.array(past.size // 4, mask=~(is_member & (past.outcome == DONE))),
        }

    def facts(self) -> list[dict[str, object]]:
        return [self._fact(group) for group in self._groups]

    def _fact(self, group: Ints) -> dict[str, object]:
        past = self._past
        done = int((past.outcome[group] == DONE).sum())
        data = {
            "flow_no": self._no(group),
            "name": _NAME,
            "outcome": "done" if done == len(group) else "failed",
            "created_at": int(past.sent_at[group].min()),
            "total": len(group),
            "done": done,
            "failed": len(group) - done,
            "skipped": 0,
        }
        return {
            "at": int(past.finished_at[group[-1]]),
            "kind": FLOW_ENDED,
            "subject": self._id(group),
            "data": msgspec.json.encode(data).decode(),
        }

    def _parents(self, group: Ints) -> str | None:
        """Of the last member, which began when these had ended."""
        past, last = self._past, group[-1]
        ended = group[:-1][past.finished_at[group[:-1]] <= past.sent_at[last]]
        return ",".join(map(str, past.message_no[ended])) or None

    def _no(self, group: Ints) -> int:
        return int(self._past.message_no[group[0]])

    def _id(self, group: Ints) -> str:
        number = np.array([self._no(group) + _SALT], dtype=np.int64)
        return str(ids(number, self._past.sent_at[group[:1]])[0].as_py())
