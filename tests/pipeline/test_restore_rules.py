"""What follows from the lake's evidence of one message, where random traffic rarely leads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.pipeline.restore.rules import Bounds, Evidence, restore_message

T = 1_000


def restored(at: int = T, *, base_at: int | None = None, **evidence: Any) -> dict[str, Any] | None:
    bounds = Bounds(None if base_at is None else 1, base_at, None)
    return restore_message(7, Evidence(**evidence), at=at, bounds=bounds)


def ending(finished_at: int, outcome: str = "dead", **given: Any) -> dict[str, Any]:
    return {
        "history_no": finished_at, "dt": "2030-01-01", "queue": "mail", "queue_no": 1,
        "outcome": outcome, "reason": "broken", "sent_at": 5, "leased_at": finished_at - 1,
        "first_leased_at": 10, "finished_at": finished_at, "attempts": 3, "failures": 2,
        "crashes": 1, "lease_no": 3,
    } | given  # fmt: skip


def test_a_message_that_died_and_stayed_is_dead_with_the_counts_it_died_with():
    found = restored(endings=[ending(900)])

    assert found is not None
    assert (found["state"], found["reason"], found["queue"]) == ("dead", "broken", "mail")
    assert (found["attempts"], found["failures"], found["crashes"]) == (3, 2, 1)
    assert (found["content_dt"], found["content_history_no"]) == ("2030-01-01", 900)


def test_a_message_that_died_before_a_snapshot_and_is_not_in_it_was_gone():
    assert restored(endings=[ending(900)], base_at=950) is None
    assert restored(endings=[ending(900)], base_at=850) is not None


@pytest.mark.parametrize("outcome", ["done", "cancelled"])
def test_a_message_that_ended_finally_is_gone(outcome):
    assert restored(endings=[ending(800), ending(900, outcome)]) is None


def test_a_redriven_message_is_ready_with_its_attempts_since():
    tried = {
        "attempt_no": 1, "lease_no": 4, "outcome": "failed", "leased_at": 940, "ended_at": 950,
        "error": "again",
    }  # fmt: skip
    endings = [ending(900), ending(1_500, "done", leased_at=980, lease_no=5)]

    found = restored(endings=endings, attempts=[tried | {"ended_at": 800}, tried])

    assert found is not None
    assert (found["state"], found["attempts"], found["failures"]) == ("ready", 1, 1)
    assert (found["last_error"], found["lease_no"], found["reason"]) == ("again", 5, None)
    assert found["content_history_no"] == 1_500


def steps(*given: dict[str, Any]) -> str:
    return json.dumps([{"kind": "step"} | one for one in given])


def test_steps_are_those_that_were_recorded_by_then():
    base = {"sent_at": 5, "due_at": 2_000, "taken_at": 800, "state": "waiting", "lease_no": 1}
    before = steps({"name": "a", "at": 700})
    after = steps({"name": "a", "at": 700}, {"name": "b", "at": T}, {"name": "c", "at": T + 1})

    both = restored(base=base | {"recorded_steps": before}, later=base | {"recorded_steps": after})
    first = restored(base=base | {"recorded_steps": before}, later=base)
    none = restored(base=base)

    assert both is not None
    assert first is not None
    assert none is not None
    assert [step["name"] for step in json.loads(both["recorded_steps"])] == ["a", "b"]
    assert [step["name"] for step in json.loads(first["recorded_steps"])] == ["a"]
    assert none["recorded_steps"] is None


def test_a_wait_whose_signal_arrived_later_continues():
    base = {"sent_at": 5, "due_at": 2_000, "taken_at": 800, "state": "waiting", "lease_no": 1}
    waits = {"name": "go", "kind": "wait", "at": 700, "signal": "go"}
    ended = {"name": "go", "kind": "wait", "at": T + 5}

    found = restored(
        base=base | {"recorded_steps": steps(waits)}, later=base | {"recorded_steps": steps(ended)}
    )
    over = restored(
        base=base | {"recorded_steps": steps(waits)},
        later=base | {"recorded_steps": steps(ended | {"at": T})},
    )

    assert found is not None
    assert over is not None
    assert [step.get("signal") for step in json.loads(found["recorded_steps"])] == ["go"]
    assert [step.get("signal") for step in json.loads(over["recorded_steps"])] == [None]
