"""Flows for the pages of the console."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.clocks import ManualClock
from tests.edge.api import Api, a_name, ok


class FlowStory:
    """A nightly import of a shop: some members are done, one has failed, others run or wait."""

    def __init__(self, api: Api, clock: ManualClock, queue: str) -> None:
        self._api = api
        self._clock = clock
        self._queue = queue

    def nightly(self, name: str = "nightly import") -> dict[str, str]:
        """The ids of its members, by name; `flow` is that of the flow."""
        sources = ("shop", "warehouse", "crm")
        loads = [f"load-{n:02}" for n in range(24)]
        members: list[dict[str, Any]] = [
            *({"name": f"fetch {source}", "kind": "fetch"} for source in sources),
            {"name": "clean", "kind": "clean", "after": [f"fetch {s}" for s in sources[:2]]},
            {"name": "match", "kind": "match", "after": ["fetch crm", "clean"]},
            *({"name": load, "kind": "load", "after": ["clean"]} for load in loads),
            {"name": "report", "kind": "report", "after": ["match", *loads]},
            {"name": "alert", "kind": "tell", "after": [{"member": "match", "on": "failed"}]},
            {"name": "tidy up", "after": [{"member": "report", "on": "ended"}], "kind": "tidy"},
        ]
        made = create(
            self._api,
            self._queue,
            members,
            name=name,
            on_finish={"queue": self._queue, "body": "ended", "kind": "tell"},
        )
        ids = dict(zip((str(m["name"]) for m in members), made["members"], strict=True))
        for seconds in (4, 11, 7):
            self.finish(seconds=seconds)
        self.finish(seconds=3)  # clean
        for n in range(9):
            self.finish(act="bury" if n == 5 else "complete", kind="load", seconds=1)
        self.finish(act="bury", kind="match", seconds=31)
        self._api.claim(self._queue, limit=2, claimed_by="importer-1")
        self._clock.advance(seconds=12)
        return {**ids, "flow": str(made["flow"]["id"])}

    def batch(self, name: str = "import of prices", many: int = 1_000) -> str:
        made = create(
            self._api,
            self._queue,
            [{"kind": "price"} for _ in range(many)],
            name=name,
            is_open=True,
            on_success={"queue": self._queue, "body": 1, "kind": "tell"},
        )
        for message in self._api.claim(self._queue, kinds=["price"], limit=100):
            ok(self._api.act(message["receipt"], "complete"))
        return str(made["flow"]["id"])

    def finish(self, *, act: str = "complete", kind: str | None = None, seconds: int = 0) -> str:
        """Run the next message for some seconds."""
        wanted = {} if kind is None else {"kinds": [kind]}
        message = self._api.claim_one(self._queue, lease_ms=600_000, **wanted)
        self._clock.advance(seconds=seconds)
        ok(self._api.act(message["receipt"], act))
        return str(message["id"])


def create(
    api: Api, queue: str, members: Iterable[dict[str, Any]], **fields: Any
) -> dict[str, Any]:
    drafts = [{"queue": queue, "body": {}, **member} for member in members]
    body = {"name": a_name("flow"), "members": drafts, **fields}
    return dict(ok(api.call("POST", "/v1/flows", body)))
