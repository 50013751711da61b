"""Service-level targets as users write them."""

from __future__ import annotations

import re

import pytest

from penstock.domain.errors import InvalidRequest
from penstock.domain.lake.slo_targets import DEFAULT_TARGETS, Objective, Target, read_targets


def test_targets_are_read_in_their_order():
    assert read_targets("mail wait 5s 99.9; * success 99%") == (
        Target(queue="mail", objective=Objective.WAIT, limit_ms=5_000, percent=99.9),
        Target(queue="*", objective=Objective.SUCCESS, limit_ms=None, percent=99),
    )


def test_targets_survive_a_round_trip():
    assert "; ".join(map(str, read_targets(DEFAULT_TARGETS))) == DEFAULT_TARGETS
    assert read_targets("") == read_targets(" ; ") == ()


def test_a_star_matches_anything_and_a_dot_only_itself():
    [target] = read_targets("eu.mail-* total 1h 95")

    assert re.match(target.pattern, "eu.mail-9")
    assert not re.match(target.pattern, "eu-mail-9")
    assert not re.match(target.pattern, "new.eu.mail-9")


@pytest.mark.parametrize(
    "text",
    [
        "mail",
        "mail wait 99",
        "mail wait soon 99",
        "mail wait 5s many",
        "mail wait 5s 100",
        "mail wait 5s 0",
        "mail success 5s 99",
        "mail speed 5s 99",
    ],
)
def test_an_invalid_target_is_refused_and_quoted(text):
    with pytest.raises(InvalidRequest, match=re.escape(text)):
        read_targets(f"* wait 1m 99; {text}")
