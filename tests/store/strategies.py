"""Hypothesis strategies for the state machine of a store."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from penstock.domain.message.lease import Verb
from penstock.domain.queue.queue import DedupScope, DedupUntil
from penstock.domain.queue.rate import Rate


def checked(draft: dict[str, Any]) -> dict[str, Any]:
    """`dedup_until` needs a key."""
    until = draft["dedup_until"]
    return draft | {"dedup_until": DedupUntil(until) if until and draft["dedup_key"] else None}


# Few values, so that the same groups, keys and instants recur.
QUEUES = st.integers(0, 2)
WHICH = st.integers(0, 50)
RECENT = st.sampled_from([0, 0, 1, 1, 2, 3, 5, 20])
MOMENTS = st.sampled_from([0, 0, 1, 3, 8])
DRAFTS = st.fixed_dictionaries(
    {
        "priority": st.sampled_from([0, 0, -1, 1]),
        "group": st.sampled_from([None, "a", "a", "b"]),
        "delay_ms": st.sampled_from([0, 0, 0, 3, 8]),
        "dedup_key": st.sampled_from([None, None, None, "x", "y"]),
        "expires_in_ms": st.sampled_from([None, None, None, 4, 12]),
        "max_attempts": st.sampled_from([None, None, 1, 2]),
        "kind": st.sampled_from([None, "k1", "k2"]),
        "timeout_ms": st.sampled_from([None, None, 2, 6]),
        "retries_timeouts": st.booleans(),
        "dedup_until": st.sampled_from([None, None, "claimed", "ended"]),
        "route": st.sampled_from([None, "r"]),
    }
).map(checked)
ACTS = st.fixed_dictionaries(
    {
        "verb": st.sampled_from(Verb),
        "which": RECENT,
        "delay_ms": st.sampled_from([None, 0, 3, 8]),
        "dice": st.sampled_from([0.0, 0.5, 0.99]),
        "is_late_ok": st.booleans(),
        "is_start": st.booleans(),
        "progress": st.sampled_from([None, "1", "2"]),
    }
)
MOSTLY_COMPLETE = st.sampled_from([*[Verb.COMPLETE] * 9, *Verb])
MOSTLY_ENDED = st.sampled_from([*[DedupUntil.ENDED] * 3, *DedupUntil])
CLAIMS = st.fixed_dictionaries(
    {
        "queue": QUEUES,
        "limit": st.integers(1, 4),
        "in_a_row": st.booleans(),
        "claim_key": st.sampled_from([None, None, "k"]),
        "kinds": st.sampled_from([None, None, ("k1",), ("k1", "k2"), ("k3",)]),
    }
)
SETTINGS = st.fixed_dictionaries(
    {
        "lease_ms": st.sampled_from([1, 5, 10]),
        "max_attempts": st.sampled_from([None, 1, 2, 3]),
        "max_crashes": st.sampled_from([None, 1, 2]),
        "max_messages": st.sampled_from([None, None, 6]),
        "dedup_window_ms": st.sampled_from([0, 5, 10]),
        "dedup_scope": st.sampled_from(DedupScope),
        "retention_ms": st.sampled_from([None, None, 20]),
        "delay_ms": st.sampled_from([0, 0, 3]),
        "max_leased": st.sampled_from([None, None, None, 1, 3]),
        "rate": st.sampled_from([None, None, None, Rate(1, 2), Rate(3, 10, 2)]),
        "is_fair": st.booleans(),
        "weights": st.sampled_from([{}, {"a": 3}, {"": 2, "b": 4}]),
        "max_leased_per_group": st.sampled_from([None, None, 1, 2]),
        "rate_per_group": st.sampled_from([None, None, Rate(1, 3), Rate(2, 7, 2)]),
    }
)


def allowed(drawn: dict[str, Any], *, is_ordered: bool) -> dict[str, Any]:
    """The settings that a queue ordered by group accepts."""
    no_limits = {"max_leased_per_group": None, "rate_per_group": None}
    return drawn | no_limits if is_ordered else drawn
