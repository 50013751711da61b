"""Durations as programs write them.  Those of settings: tests/settings/test_settings.py."""

from datetime import timedelta

import pytest

from penstock.domain.duration import as_ms
from penstock.domain.errors import InvalidRequest


@pytest.mark.parametrize(
    ("given", "ms"),
    [
        ("500ms", 500),
        ("30s", 30_000),
        ("1.5s", 1_500),
        ("1h30m", 5_400_000),
        ("0s", 0),
        (timedelta(minutes=5), 300_000),
        (timedelta(milliseconds=1), 1),
    ],
)
def test_a_duration_is_text_with_a_unit_or_a_timedelta(given, ms):
    assert as_ms("delay", given) == ms


@pytest.mark.parametrize(
    "given", [5, 5.0, "5", "5.5", " 5 ", True, None, "soon", "", "-5s", "5 parsecs"]
)
def test_a_bare_number_is_refused_because_it_could_be_seconds_or_milliseconds(given):
    with pytest.raises(InvalidRequest, match=r"delay is .*: give a duration"):
        as_ms("delay", given)


def test_time_does_not_run_backwards():
    with pytest.raises(InvalidRequest, match="must not be negative"):
        as_ms("delay", timedelta(seconds=-1))
