"""Queue names and settings."""

import msgspec
import pytest

from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, HOUR, SECOND
from penstock.domain.message.retry import Exponential, Fixed
from penstock.domain.queue.queue import (
    Ordering,
    QueueSettings,
    Redelivery,
    check_name,
    check_settings,
)
from penstock.domain.queue.rate import Rate
from tests.factories import a_queue, some_settings


@pytest.mark.parametrize("name", ["a", "_", "9", "mail.out-2_x", "A" * 80])
def test_letters_digits_and_three_marks_make_a_name(name):
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", "A" * 81, ".hidden", "-x", "a b", "a/b", "ä", "a\n", "a\0", "a:b", "*"],
    ids=ascii,
)
def test_other_names_are_refused(name):
    with pytest.raises(InvalidRequest):
        check_name(name)


LIMITS = [
    ("lease_ms", 0, 12 * HOUR),
    ("delay_ms", 0, 366 * DAY),
    ("retention_ms", SECOND, 3660 * DAY),
    ("max_attempts", 1, 1_000_000),
    ("max_body_bytes", 1, 64 * 1024 * 1024),
    ("max_messages", 1, 10**12),
    ("max_leased", 1, 10**6),
    ("max_leased_per_group", 1, 10_000),
    ("dedup_window_ms", 0, 366 * DAY),
    ("wait_ms", 0, HOUR),
]


@pytest.mark.parametrize(("name", "low", "high"), LIMITS)
def test_a_setting_is_accepted_up_to_its_limits_and_refused_by_name_beyond_them(name, low, high):
    for value in (low, high):
        settings = QueueSettings(**{name: value})
        assert check_settings(settings, name="mail") is settings

    for value in (low - 1, high + 1):
        with pytest.raises(InvalidRequest, match=name):
            check_settings(QueueSettings(**{name: value}), name="mail")


@pytest.mark.parametrize("name", ["retention_ms", "max_attempts", "max_body_bytes", "max_messages"])
def test_some_settings_may_be_without_limit(name):
    settings = some_settings(**{name: None})

    assert check_settings(settings, name="mail") is settings


def test_an_invalid_back_off_is_refused():
    with pytest.raises(InvalidRequest, match="backoff"):
        check_settings(QueueSettings(backoff=Fixed(-1)), name="mail")


@pytest.mark.parametrize("name", ["mail", "dead"])
def test_a_dead_letter_queue_needs_a_proper_name_and_may_be_the_queue_itself(name):
    settings = QueueSettings(dead_letter_queue="dead")

    assert check_settings(settings, name=name) is settings
    with pytest.raises(InvalidRequest):
        check_settings(QueueSettings(dead_letter_queue="no name"), name="mail")


@pytest.mark.parametrize(
    ("settings", "rotates"),
    [
        (QueueSettings(ordering=Ordering.GROUP, redelivery=Redelivery.BACK), True),
        (QueueSettings(ordering=Ordering.GROUP, redelivery=Redelivery.BACK, is_fair=True), False),
        (QueueSettings(ordering=Ordering.GROUP), False),
        (QueueSettings(redelivery=Redelivery.BACK), False),
    ],
)
def test_groups_rotate_in_an_ordered_queue_that_redelivers_at_the_back(settings, rotates):
    assert settings.rotates_groups is rotates


@pytest.mark.parametrize(("name", "most_chars"), [("labels", 256), ("annotations", 10_000)])
def test_a_queue_keeps_texts_of_a_limited_number_and_length(name, most_chars):
    fitting = [{}, {"n" * 128: "x" * most_chars, "n": ""}, {str(n): "x" for n in range(50)}]
    too_much = [{"": "x"}, {"n" * 129: "x"}, {"n": "x" * (most_chars + 1)}, {"n": "\x00"}]
    too_much.append({str(n): "x" for n in range(51)})

    for texts in fitting:
        settings = some_settings(**{name: texts})
        assert check_settings(settings, name="mail") is settings
    for texts in too_much:
        with pytest.raises(InvalidRequest, match=name):
            check_settings(some_settings(**{name: texts}), name="mail")


def test_annotations_have_a_limit_together_because_every_transaction_reads_them():
    most = {str(n): "x" * 8_192 for n in range(8)}

    check_settings(QueueSettings(annotations=most), name="mail")
    with pytest.raises(InvalidRequest, match="together"):
        check_settings(QueueSettings(annotations=most | {"9": "x"}), name="mail")


def test_the_defaults_are_the_documented_ones():
    assert msgspec.to_builtins(QueueSettings()) == {
        "lease_ms": 30_000,
        "delay_ms": 0,
        "retention_ms": None,
        "max_attempts": 5,
        "dead_letter_queue": None,
        "ordering": "standard",
        "redelivery": "front",
        "backoff": {
            "type": "exponential",
            "first_ms": 1_000,
            "factor": 2.0,
            "max_ms": 3_600_000,
            "jitter": 0.2,
        },
        "max_body_bytes": None,
        "max_messages": None,
        "dedup_window_ms": 300_000,
        "dedup_by_content": False,
        "dedup_scope": "queue",
        "wait_ms": None,
        "labels": {},
        "annotations": {},
        "max_crashes": 3,
        "max_leased": None,
        "max_leased_per_group": None,
        "rate": None,
        "rate_per_group": None,
        "is_fair": False,
        "weights": {},
    }


@pytest.mark.parametrize("backoff", [Fixed(5), Exponential(first_ms=7)])
def test_settings_survive_being_written_down_and_read_again(backoff):
    settings = QueueSettings(backoff=backoff, redelivery=Redelivery.BACK, max_messages=9)

    text = msgspec.json.encode(settings)

    assert msgspec.json.decode(text, type=QueueSettings) == settings


def test_an_unknown_setting_is_refused():
    with pytest.raises(msgspec.ValidationError, match="visibility"):
        msgspec.convert({"visibility": 30}, QueueSettings)


def test_a_paused_queue_gives_nothing():
    queue = a_queue()

    assert queue.is_claimable
    assert not msgspec.structs.replace(queue, is_paused=True).is_claimable


@pytest.mark.parametrize(
    "limit", [{"max_leased_per_group": 1}, {"rate_per_group": Rate(1)}], ids=str
)
def test_a_queue_ordered_by_group_takes_no_limits_of_groups(limit):
    settings = some_settings(ordering=Ordering.GROUP, **limit)

    with pytest.raises(InvalidRequest, match="one message of a group at a time"):
        check_settings(settings, name="mail")


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"rate": Rate(0)}, "rate.limit"),
        ({"rate_per_group": Rate(1, burst=10_001)}, "rate_per_group.burst"),
        ({"weights": {"a": 0}}, "weights"),
    ],
)
def test_rates_and_weights_out_of_range_are_refused_by_name(wrong, named):
    with pytest.raises(InvalidRequest, match=named):
        check_settings(some_settings(**wrong), name="mail")


@pytest.mark.parametrize(
    "steering",
    [
        {"max_leased": 1},
        {"rate": Rate(1)},
        {"max_leased_per_group": 1},
        {"rate_per_group": Rate(1)},
        {"is_fair": True},
    ],
    ids=str,
)
def test_which_settings_serialise_the_transactions_of_a_queue(steering):
    assert a_queue(**steering).has_limits
    assert not a_queue(weights={"a": 2}).has_limits


def test_a_queue_that_a_circuit_holds_gives_nothing_whatever_an_operator_says():
    held = msgspec.structs.replace(a_queue(), held_by="a" * 32)

    assert not held.is_claimable
    assert not msgspec.structs.replace(held, is_paused=True).is_claimable
