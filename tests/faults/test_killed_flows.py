"""Random graphs of jobs end as their edges say, while workers and the server are killed.

No member is stranded, done twice, or begun before the parents that it needs were done.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.edge.api import ok
from tests.faults.figures import figure
from tests.stories.environment import Program, StoryEnvironment

FLOWS = figure(10, 100)
FAULTS = figure(8, 120)
APPLICATION = "tests.faults.flow_jobs:app"
LEASE = ("--slots", "4", "--lease", "2s", "--beat", "400ms")
PAUSE_S = 3.0  # longer than a lease
FAILED = ("cancelled", "dead")


@pytest.fixture(params=["sqlite", "postgres"])
def environment(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoryEnvironment]:
    store = f"sqlite:///{tmp_path / 'store.db'}"
    if request.param == "postgres":
        store = str(request.getfixturevalue("migrated_url"))
    with StoryEnvironment(tmp_path, store, is_remote=True) as environment:
        environment.serve()
        ok(environment.api.call("PUT", "/v1/queues/plain", {}))
        ok(environment.api.call("PUT", "/v1/queues/ordered", {"ordering": "group"}))
        yield environment


def test_random_flows_keep_to_their_graphs_while_workers_and_the_server_are_killed(
    environment: StoryEnvironment,
) -> None:
    storm = Storm(environment, random.Random(19))
    for number in range(FLOWS):
        storm.create(number)

    for _ in range(FAULTS):
        begun = len(environment.lines())
        storm.break_something()
        environment.until(lambda: len(environment.lines()) >= begun + 5 or storm.has_settled())  # noqa: B023
    (environment.folder / "healed").touch()
    environment.until(storm.redrive_all)

    judge(environment, storm.flows)


class Storm:
    def __init__(self, environment: StoryEnvironment, dice: random.Random) -> None:
        self._environment = environment
        self._dice = dice
        self._api = environment.api
        self.flows: list[str] = []
        self._workers = [self._work() for _ in range(2)]

    def create(self, number: int) -> None:
        count = self._dice.randint(3, 10)
        members = [self._member(f"{number}.{i}", i, number) for i in range(count)]
        roles = ("on_success", "on_failure", "on_finish")
        callbacks = {role: _draft("plain", f"{number}.{role}", []) for role in roles}
        body = {"name": "storm", "members": members, **callbacks}
        made = ok(self._api.call("POST", "/v1/flows", body))
        self.flows.append(made["flow"]["id"])

    def break_something(self) -> None:
        dice = self._dice
        match dice.choice(("worker", "worker", "server", "pause", "operate", "operate")):
            case "worker":
                victim = dice.randrange(len(self._workers))
                self._workers[victim].kill()
                self._workers[victim] = self._work()
            case "server":
                self._environment.kill_server()
                self._environment.server.start()
            case "pause":  # it wakes up as a lease holder whose lease was lost
                worker = dice.choice(self._workers)
                os.killpg(worker.pid, signal.SIGSTOP)
                threading.Event().wait(PAUSE_S)
                os.killpg(worker.pid, signal.SIGCONT)
            case _:
                self._operate()

    def has_settled(self) -> bool:
        """Whether nothing runs that the next fault could hit."""
        return all(self._flow(one)["state"] != "running" for one in self.flows)

    def redrive_all(self) -> bool:
        """Returns whether everything has ended, and nothing is dead that could be redriven."""
        for one in self.flows:
            self._api.call("POST", f"/v1/flows/{one}/redrive", {})  # not if it was cancelled
        return self.has_settled() and not any(
            m["state"] in ("dead", "released")
            for one in self.flows
            for m in members_of(self._environment, one)
            if self._flow(one)["state"] != "cancelled"
        )

    def _flow(self, flow: str) -> dict[str, Any]:
        return flow_of(self._environment, flow)

    def _operate(self) -> None:
        """An answer may be that it is too late."""
        flow = self._dice.choice(self.flows)
        member = self._dice.choice(members_of(self._environment, flow))["id"]
        acts = (f"flows/{flow}/redrive", f"flows/{flow}/redrive", f"messages/{member}/cancel")
        path = self._dice.choice((*acts, f"messages/{member}/bury", f"flows/{flow}/cancel"))
        body = {"is_running_ok": True} if path.startswith("messages") else {}
        self._api.call("POST", f"/v1/{path}", body)

    def _member(self, node: str, place: int, number: int) -> dict[str, Any]:
        edges: dict[str, str] = {}
        for above in self._dice.sample(
            range(place), min(place, self._dice.choice((0, 1, 1, 2, 3)))
        ):
            edges[f"{number}.{above}"] = self._dice.choice(("done", "done", "ended", "failed"))
        needed = [parent for parent, on in edges.items() if on == "done"]
        draft = _draft(
            self._dice.choice(("plain", "ordered")),
            node,
            needed,
            fails=self._dice.random() < 0.2,
            takes_s=self._dice.choice((0.0, 0.02, 0.1)),
        )
        after = [{"member": parent, "on": on} for parent, on in edges.items()]
        delay = {"delay_ms": 300} if self._dice.random() < 0.1 else {}
        inputs = {"inputs": {"parents": needed}} if needed else {}
        return {**draft, "name": node, "after": after, **inputs, **delay}

    def _work(self) -> Program:
        return self._environment.run("penstock", "worker", APPLICATION, *LEASE)


def judge(environment: StoryEnvironment, ids: list[str]) -> None:
    lines = environment.lines()
    first_begin, first_end = _first(lines, "begin"), _first(lines, "end")
    done = {"plain": 0, "ordered": 0}
    for one in ids:
        flow, everyone = flow_of(environment, one), members_of(environment, one)
        states = {m["id"]: m["state"] for m in everyone}
        names = {m["id"]: m["name"] for m in everyone if "role" not in m}
        members = [m for m in everyone if m["id"] in names]
        assert set(states.values()) <= {"done", "skipped", *FAILED}, states
        counted = [states[m["id"]] for m in members]
        assert flow["remaining"] == 0
        assert flow["done"] == counted.count("done")
        assert flow["skipped"] == counted.count("skipped")
        for m in everyone:
            done[m["queue"]] += m["state"] == "done"
        for m in members:
            edges = {after["member"]: after.get("on", "done") for after in m.get("after", [])}
            needed = [parent for parent, on in edges.items() if on == "done"]
            if m["name"] in first_begin:
                for parent in needed:
                    assert first_end[names[parent]] < first_begin[m["name"]], "it ran early"
            if m["state"] == "done":
                assert all(states[parent] == "done" for parent in needed)
            elif m.get("reason") == "parent_failed":
                assert any(states[parent] in FAILED for parent in needed), "it is stranded"
            elif m["state"] == "skipped":
                handled = [parent for parent, on in edges.items() if on == "failed"]
                is_unneeded = any(states[parent] == "skipped" for parent in needed)
                assert is_unneeded or not any(states[parent] in FAILED for parent in handled)
        callbacks = {m["role"]: m["state"] for m in everyone if m not in members}
        assert callbacks["on_finish"] == "done" or flow["state"] == "cancelled", callbacks
        assert (callbacks["on_success"] == "done") == (flow["state"] == "done"), callbacks
    for queue, count in done.items():
        assert environment.totals(queue)["done"] == count, "a member was done twice"


def _draft(
    queue: str, node: str, expected: list[str], *, fails: bool = False, takes_s: float = 0.0
) -> dict[str, Any]:
    body = {"node": node, "fails": fails, "takes_s": takes_s, "parents": [], "expected": expected}
    group = {"group": node.partition(".")[0]} if queue == "ordered" else {}
    return {"queue": queue, "kind": queue, "body": body, **group}


def flow_of(environment: StoryEnvironment, flow: str) -> dict[str, Any]:
    return dict(environment.api.get(f"/v1/flows/{flow}"))


def members_of(environment: StoryEnvironment, flow: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = environment.api.get(f"/v1/flows/{flow}/members")["members"]
    return found


def _first(lines: list[str], verb: str) -> dict[str, int]:
    """The place of the first such line of each node."""
    places = [(line.split()[1], i) for i, line in enumerate(lines) if line.startswith(verb)]
    return dict(reversed(places))
