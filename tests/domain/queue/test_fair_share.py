"""Fair share: each group gets its share, and an idle group saves nothing up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.errors import InvalidRequest
from penstock.domain.queue import fair_share as fairness
from penstock.domain.queue.fair_share import FIRST_POSITION, STEP


def line_of(sent: str, weights: dict[str, int] | None = None) -> str:
    """The groups of messages that came in this order, in the order in which they are claimed."""
    finish: dict[str, int] = {}
    line = []
    for no, group in enumerate(sent):
        turn = fairness.next_position(0, finish.get(group, 0))
        finish[group] = fairness.finish(turn, fairness.weight_of(group, weights or {}))
        line.append((turn, no, group))
    return "".join(group for _, _, group in sorted(line))


def test_groups_alternate_however_early_or_much_they_sent():
    assert line_of("aaaaaabbbcc") == "abcabcabaaa"


def test_a_weight_of_three_means_three_times_the_share():
    assert line_of("aaaaaabb", {"a": 3}) == "abaaabaa"


def test_a_group_that_was_away_begins_where_the_line_is():
    assert fairness.next_position(50 * STEP, finish=3 * STEP) == 50 * STEP


def test_a_group_that_sent_ahead_continues_after_its_last_message():
    assert fairness.next_position(3 * STEP, finish=50 * STEP) == 50 * STEP


def test_no_turn_is_as_early_as_none():
    assert fairness.next_position(0, 0) == FIRST_POSITION > fairness.NO_POSITION


def test_messages_without_a_group_form_one_group():
    assert fairness.weight_of(None, {"": 4}) == fairness.weight_of("", {"": 4}) == 4


@given(weights=st.dictionaries(st.sampled_from("abcd"), st.integers(1, 8), min_size=2))
def test_groups_with_queued_messages_share_by_weight(weights):
    line = line_of("".join(group * 100 for group in weights), weights)
    # Until the first of them has nothing left.
    upto = min(line.rindex(group) for group in weights)
    total = sum(weights.values())
    for group, weight in weights.items():
        share = line[:upto].count(group)
        assert abs(share - upto * weight / total) <= 2 * len(weights)


@pytest.mark.parametrize("weights", [{"a": 0}, {"a": 1_001}, {"a\x00": 1}, {"a" * 257: 1}])
def test_a_weight_out_of_range_is_refused(weights):
    with pytest.raises(InvalidRequest, match="weights"):
        fairness.check_weights(weights)


def test_a_queue_has_no_end_of_weights():
    with pytest.raises(InvalidRequest, match="at most 1000"):
        fairness.check_weights({str(n): 1 for n in range(1_001)})
