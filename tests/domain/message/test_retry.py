"""How long a failed message waits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.errors import InvalidRequest
from penstock.domain.message import retry
from penstock.domain.message.retry import MAX_DELAY_MS, Exponential, Fixed, Listed, delay_ms

EXPONENTIALS = st.builds(
    Exponential,
    first_ms=st.integers(0, MAX_DELAY_MS),
    factor=st.floats(1, 100),
    max_ms=st.integers(0, MAX_DELAY_MS),
    jitter=st.floats(0, 1),
)
SHARES = st.floats(0, 1, exclude_max=True)


@pytest.mark.parametrize("failures", [1, 2, 1_000_000])
def test_a_fixed_back_off_is_always_the_same(failures):
    assert delay_ms(Fixed(250), failures=failures, dice=0.9) == 250


@pytest.mark.parametrize(("failures", "delay"), [(1, 5), (2, 60), (3, 900), (4, 900), (10**9, 900)])
def test_a_listed_back_off_goes_down_the_list_and_stays_at_its_end(failures, delay):
    assert delay_ms(Listed((5, 60, 900)), failures=failures, dice=0.9) == delay


@pytest.mark.parametrize(("failures", "delay"), [(1, 100), (2, 300), (3, 900), (4, 1_000)])
def test_an_exponential_back_off_grows_by_its_factor_up_to_its_maximum(failures, delay):
    backoff = Exponential(first_ms=100, factor=3.0, max_ms=1_000, jitter=0)

    assert delay_ms(backoff, failures=failures, dice=0.5) == delay


def test_a_slowly_growing_back_off_eventually_reaches_its_maximum():
    backoff = Exponential(first_ms=1_000, factor=1.01, max_ms=3_600_000, jitter=0)

    assert delay_ms(backoff, failures=1_000, dice=0.5) == 3_600_000


@pytest.mark.parametrize(("dice", "delay"), [(0.0, 800), (0.25, 900), (0.5, 1_000), (0.75, 1_100)])
def test_jitter_spreads_the_delay_to_both_sides(dice, delay):
    backoff = Exponential(first_ms=1_000, jitter=0.2)

    assert delay_ms(backoff, failures=1, dice=dice) == delay


@given(backoff=EXPONENTIALS, failures=st.integers(1, 10**9), dice=SHARES)
def test_an_exponential_back_off_stays_within_the_bounds_of_its_jitter(backoff, failures, dice):
    delay = delay_ms(backoff, failures=failures, dice=dice)

    highest = backoff.max_ms * (1 + backoff.jitter)
    lowest = min(backoff.first_ms, backoff.max_ms) * (1 - backoff.jitter)
    assert int(lowest) - 1 <= delay <= highest


@given(backoff=EXPONENTIALS, failures=st.integers(1, 2_000), dice=SHARES)
def test_one_more_failure_never_shortens_an_exponential_back_off(backoff, failures, dice):
    shorter = delay_ms(backoff, failures=failures, dice=dice)

    assert delay_ms(backoff, failures=failures + 1, dice=dice) >= shorter


@pytest.mark.parametrize(
    "backoff",
    [
        Fixed(0),
        Fixed(MAX_DELAY_MS),
        Listed((0,)),
        Listed((1,) * 100),
        Exponential(),
        Exponential(first_ms=0, factor=1, max_ms=0, jitter=0),
        Exponential(first_ms=MAX_DELAY_MS, factor=100, max_ms=MAX_DELAY_MS, jitter=1),
    ],
)
def test_back_offs_up_to_their_limits_are_accepted(backoff):
    assert retry.check(backoff) is backoff


@pytest.mark.parametrize(
    ("backoff", "named"),
    [
        (Fixed(-1), "delay_ms"),
        (Fixed(MAX_DELAY_MS + 1), "delay_ms"),
        (Listed(()), "delays_ms"),
        (Listed((1,) * 101), "delays_ms"),
        (Listed((1, -1)), "delays_ms"),
        (Listed((1, MAX_DELAY_MS + 1)), "delays_ms"),
        (Exponential(first_ms=-1), "first_ms"),
        (Exponential(first_ms=MAX_DELAY_MS + 1), "first_ms"),
        (Exponential(max_ms=-1), "max_ms"),
        (Exponential(max_ms=MAX_DELAY_MS + 1), "max_ms"),
        (Exponential(factor=0.99), "factor"),
        (Exponential(factor=100.1), "factor"),
        (Exponential(factor=float("nan")), "factor"),
        (Exponential(jitter=-0.01), "jitter"),
        (Exponential(jitter=1.01), "jitter"),
    ],
)
def test_a_back_off_out_of_its_limits_is_refused_by_name(backoff, named):
    with pytest.raises(InvalidRequest, match=f"backoff.{named}"):
        retry.check(backoff)
