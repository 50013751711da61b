"""A move task and kill -9: every message is in one queue, and the count says in which."""

from __future__ import annotations

import random
import time
from typing import Any

from tests.faults.figures import figure
from tests.faults.server import Server
from tests.faults.wire import Wire

DEAD_LETTERS = figure(4_000, 60_000)
BATCH = 1_000
END_S = figure(120, 1200)
MAX_KILLS = figure(6, 120)  # bounds the test where servers start slowly


def test_a_move_that_is_killed_again_and_again_loses_and_doubles_nothing(server: Server) -> None:
    dice = random.Random(7)
    wire = Wire(server.port)
    fill(wire, DEAD_LETTERS)
    move = ok(wire, "POST", "/v1/queues/dead/moves", {"max_per_second": 2_000})
    seen: list[int] = []

    deadline = time.monotonic() + END_S
    while move["state"] == "running" and time.monotonic() < deadline:
        time.sleep(dice.uniform(0.1, 0.9))
        if len(seen) < MAX_KILLS:
            server.kill()
            wire.close()
            server.start()
        move = ok(wire, "GET", f"/v1/moves/{move['id']}")
        seen.append(move["moved"])

    kills_midway = [moved for moved in seen if 0 < moved < DEAD_LETTERS]
    assert kills_midway, f"no kill came between two steps: {seen}"
    assert seen == sorted(seen)
    assert (move["state"], move["moved"]) == ("completed", DEAD_LETTERS), server.stderr_tail()
    assert ready(wire, "dead") == 0
    assert ready(wire, "mail") == DEAD_LETTERS
    assert claimed_bodies(wire, "mail") == list(range(DEAD_LETTERS))


def test_the_count_equals_what_was_moved_whenever_the_kill_comes(server: Server) -> None:
    wire = Wire(server.port)
    fill(wire, 3 * BATCH)
    move = ok(wire, "POST", "/v1/queues/dead/moves", {"max_per_second": 1_000})
    path, deadline = f"/v1/moves/{move['id']}", time.monotonic() + END_S
    while not ok(wire, "GET", path)["moved"]:
        assert time.monotonic() < deadline, server.stderr_tail()
        time.sleep(0.05)
    server.kill()
    wire.close()
    server.start()
    if ok(wire, "GET", path)["state"] == "running":
        ok(wire, "POST", f"{path}/cancel")

    while (ended := ok(wire, "GET", path))["state"] == "cancelling":
        assert time.monotonic() < deadline, server.stderr_tail()
        time.sleep(0.05)

    assert ended["moved"] == ready(wire, "mail") > 0
    assert ready(wire, "dead") == 3 * BATCH - ended["moved"]


def fill(wire: Wire, count: int) -> None:
    """Create `count` dead letters of "mail" in "dead"."""
    ok(wire, "PUT", "/v1/queues/dead", {})
    ok(wire, "PUT", "/v1/queues/mail", {"dead_letter_queue": "dead"})
    for start in range(0, count, BATCH):
        drafts = [{"body": n} for n in range(start, start + BATCH)]
        ok(wire, "POST", "/v1/queues/mail/messages/batch", {"messages": drafts})
        claimed = ok(wire, "POST", "/v1/queues/mail/claims", {"limit": BATCH})["messages"]
        acts = [{"receipt": m["receipt"], "act": "bury"} for m in claimed]
        ok(wire, "POST", "/v1/leases/batch", {"acts": acts})
    assert ready(wire, "dead") == count


def ready(wire: Wire, queue: str) -> int:
    return int(ok(wire, "GET", f"/v1/queues/{queue}")["counts"]["ready"])


def claimed_bodies(wire: Wire, queue: str) -> list[int]:
    found: list[int] = []
    while messages := ok(wire, "POST", f"/v1/queues/{queue}/claims", {"limit": BATCH})["messages"]:
        found += [m["body"] for m in messages]
    return sorted(found)


def ok(wire: Wire, method: str, path: str, body: Any = None) -> Any:
    answer = wire.call(method, path, body)
    assert answer.status in (200, 201), f"{method} {path}: {answer}"
    return answer.data
