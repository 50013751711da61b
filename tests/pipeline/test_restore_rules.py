"""What follows from the lake's evidence of one message, where random traffic rarely leads."""

from __future__ import annotations

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
