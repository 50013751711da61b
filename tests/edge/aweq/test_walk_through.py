"""The chapter "Testing Requirements" of AweQ's document, step by step with its texts."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.clocks import ManualClock
from tests.edge.aweq.client import AweqClient

AVAILABLE = "Requested batch-size available."
FEWER = "Fewer messages available than requested."
NONE_LEFT = "No messages available in queue."


def test_the_documents_walk_through(aweq: AweqClient, clock: ManualClock) -> None:
    keys, started = [], clock.now()

    # Producer Writes To AweQ, Obtains Message ID
    keys.append(aweq.send("job-details-01"))
    assert str(UUID(keys[0])) == keys[0]
    assert aweq.stats() == stats_answer(1, 0)

    # Consumer Polls AweQ for Messages, Batches Are Disjointed
    for number in range(2, 8):
        clock.advance(seconds=2)
        keys.append(aweq.send(f"job-details-0{number}"))
    assert len(set(keys)) == 7
    assert aweq.stats() == stats_answer(7, 0)

    assert aweq.receive(3) == received_answer(
        AVAILABLE, keys, [1, 2, 3], started=started, retry_count=0
    )
    assert aweq.receive(3) == received_answer(
        AVAILABLE, keys, [4, 5, 6], started=started, retry_count=0
    )
    assert aweq.receive(3) == received_answer(FEWER, keys, [7], started=started, retry_count=0)
    assert aweq.stats() == stats_answer(0, 7)

    # Consumed Messages Are Returned to AweQ When Not-Acknowledged
    assert aweq.receive(32) == {"status": "okay", "message": NONE_LEFT, "messages": []}
    # The document's next picture shows 7 and 0; its text says that checkouts are not zero.
    assert aweq.stats() == stats_answer(0, 7)

    clock.advance(seconds=121)
    assert aweq.stats() == stats_answer(7, 0)
    assert aweq.receive(3) == received_answer(
        AVAILABLE, keys, [1, 2, 3], started=started, retry_count=1
    )

    # Messages Acknowledged After Being Consumed Are Deleted
    clock.advance(seconds=121)
    assert aweq.stats() == stats_answer(7, 0)
    assert aweq.receive() == received_answer(AVAILABLE, keys, [4], started=started, retry_count=1)

    assert aweq.delete(keys[3])
    # The document shows 6 and 0, and asks for a sum that is one less than before.
    assert aweq.stats() == stats_answer(6, 0)

    # The others return in order, those returned twice after those returned once.
    left = aweq.receive(32)
    assert left["message"] == FEWER
    found = [(entry["message"][-1], entry["retry_count"]) for entry in left["messages"]]
    assert found == [("5", 1), ("6", 1), ("7", 1), ("1", 2), ("2", 2), ("3", 2)]


def stats_answer(queued: int, checked_out: int) -> dict[str, Any]:
    return {
        "status": "okay",
        "stats": {
            "queue_length": queued,
            "checkouts_count": checked_out,
            "checkout_lifetime": "120s",
            "rescue_interval": "2s",
        },
    }


def received_answer(
    text: str, keys: list[str], numbers: list[int], *, started: int, retry_count: int
) -> dict[str, Any]:
    messages = [
        {
            "key": keys[number - 1],
            "timestamp": started + (number - 1) * 2_000,  # time of the send, whatever came later
            "retry_count": retry_count,
            "message": f"job-details-0{number}",
        }
        for number in numbers
    ]
    return {"status": "okay", "message": text, "messages": messages}
