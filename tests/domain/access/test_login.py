"""How long a login is valid."""

from __future__ import annotations

import pytest

from penstock.domain.access import login
from penstock.domain.access.login import Login
from penstock.domain.limits import DAY, HOUR
from penstock.domain.store.store_time import MAX_CARRY_MS
from penstock.testing.clock import NOON


@pytest.mark.parametrize(
    ("until_at", "is_valid"),
    [
        (NOON, False),
        (NOON + 1, True),
        (NOON + HOUR, True),
        (NOON + HOUR + MAX_CARRY_MS, True),
        (NOON + HOUR + MAX_CARRY_MS + 1, False),
        (NOON + 2 * DAY, False),
    ],
)
def test_a_login_counts_until_its_end_and_not_if_a_clock_in_the_future_made_it(
    until_at: int, is_valid: bool
) -> None:
    found = Login(login.hash_token("t"), "k", until_at)

    assert login.is_valid(found, valid_ms=HOUR, now=NOON) is is_valid
