"""Drafts: which are valid, and the messages they become."""

import hashlib

import pytest

from penstock.domain.errors import InvalidRequest, TooLarge
from penstock.domain.limits import DAY, HOUR, MAX_INSTANT, MINUTE, SECOND, Limits
from penstock.domain.message.draft import MAX_PRIORITY, content_key
from penstock.domain.message.lifecycle import Content, Message, State
from penstock.domain.queue.queue import DedupUntil
from tests.clocks import NOON
from tests.factories import a_draft, a_new_message, a_queue

LONGEST = 3660 * DAY


def test_a_draft_becomes_a_message_with_all_its_labels():
    new = a_new_message(
        a_queue(7),
        body='{"n": 1}',
        attributes={"lang": "de"},
        kind="welcome",
        entity_id="user-1",
        tags=("eu", "gold"),
        group="user-1",
        priority=-3,
        dedup_key="once",
        max_attempts=2,
        trace="00-1-2-01",
    )

    assert new.content == Content('{"n": 1}', {"lang": "de"}, "00-1-2-01")
    assert new.message == Message(
        id=new.message.id,
        queue_no=7,
        due_at=NOON,
        sent_at=NOON,
        priority=-3,
        max_attempts=2,
        group="user-1",
        kind="welcome",
        entity_id="user-1",
        tag1="eu",
        tag2="gold",
        dedup_key="once",
        size=8,
        body_day=NOON // DAY,
    )


def test_empty_attributes_are_none():
    assert a_new_message(a_queue(), attributes={}).content.attributes is None


@pytest.mark.parametrize(
    ("timing", "of_the_queue", "due_at"),
    [
        ({}, 0, NOON),
        ({}, MINUTE, NOON + MINUTE),
        ({"delay_ms": SECOND}, MINUTE, NOON + SECOND),
        ({"delay_ms": 0}, MINUTE, NOON),
        ({"due_at": NOON + HOUR}, MINUTE, NOON + HOUR),
        ({"due_at": NOON - HOUR}, MINUTE, NOON - HOUR),
    ],
    ids=["at once", "the queue's delay", "its own", "none", "an instant", "an instant gone by"],
)
def test_a_message_is_due_at_its_own_due_date_or_else_after_the_queues_delay(
    timing, of_the_queue, due_at
):
    message = a_new_message(a_queue(delay_ms=of_the_queue), **timing).message

    assert message.due_at == due_at
    assert message.state is (State.WAITING if due_at > NOON else State.READY)


@pytest.mark.parametrize(
    ("wanted", "retention_ms", "expires_at"),
    [
        ({}, None, None),
        ({"expires_in_ms": SECOND}, None, NOON + SECOND),
        ({"expires_at": NOON + HOUR}, MINUTE, NOON + MINUTE),
        ({"expires_in_ms": 0}, MINUTE, NOON),
        ({}, MINUTE, NOON + MINUTE),
    ],
)
def test_a_message_expires_at_its_own_date_or_after_the_queues_retention_if_sooner(
    wanted, retention_ms, expires_at
):
    message = a_new_message(a_queue(retention_ms=retention_ms), **wanted).message

    assert message.expires_at == expires_at


@pytest.mark.parametrize(
    "both",
    [
        {"due_at": NOON, "delay_ms": 0},
        {"expires_at": NOON, "expires_in_ms": 0},
    ],
)
def test_an_instant_and_a_duration_for_the_same_thing_are_refused(both):
    with pytest.raises(InvalidRequest, match="not both"):
        a_new_message(a_queue(), **both)


ACCEPTED = [
    {"tags": ()},
    {"tags": ("a", "b")},
    {"kind": "k" * 256},
    {"trace": "t" * 1024},
    {"priority": MAX_PRIORITY},
    {"priority": -MAX_PRIORITY},
    {"max_attempts": 1},
    {"max_attempts": 1_000_000},
    {"due_at": 0},
    {"due_at": MAX_INSTANT},
    {"delay_ms": LONGEST},
    {"expires_at": 0},
    {"expires_at": MAX_INSTANT},
    {"expires_in_ms": LONGEST},
    {"attributes": {f"a{n}": "" for n in range(32)}},
    {"attributes": {"a": "x" * (8 * 1024 - 1)}},
]
REFUSED = [
    {"tags": ("a", "b", "c")},
    *({name: ""} for name in ("kind", "entity_id", "group", "dedup_key")),
    *({name: "k" * 257} for name in ("kind", "entity_id", "group", "dedup_key")),
    *({name: "a\0b"} for name in ("kind", "entity_id", "group", "dedup_key", "trace")),
    {"tags": ("",)},
    {"tags": ("a", "k" * 257)},
    {"trace": "t" * 1025},
    {"priority": MAX_PRIORITY + 1},
    {"priority": -MAX_PRIORITY - 1},
    {"max_attempts": 0},
    {"max_attempts": 1_000_001},
    {"due_at": -1},
    {"due_at": MAX_INSTANT + 1},
    {"delay_ms": -1},
    {"delay_ms": LONGEST + 1},
    {"expires_at": -1},
    {"expires_at": MAX_INSTANT + 1},
    {"expires_in_ms": -1},
    {"expires_in_ms": LONGEST + 1},
    {"attributes": {"": "nameless"}},
    {"attributes": {f"a{n}": "" for n in range(33)}},
]


@pytest.mark.parametrize("fields", ACCEPTED, ids=str)
def test_a_draft_up_to_its_limits_is_accepted(fields):
    assert a_new_message(a_queue(), **fields).message.queue_no == 1


@pytest.mark.parametrize("fields", REFUSED, ids=str)
def test_a_draft_out_of_its_limits_is_refused(fields):
    with pytest.raises(InvalidRequest):
        a_new_message(a_queue(), **fields)


@pytest.mark.parametrize(
    ("body", "size"), [("abc", 3), ('"ä"', 4), ('"€"', 5), ('"𝄞"', 6)], ids=ascii
)
def test_the_size_of_a_body_is_counted_in_bytes(body, size):
    limits = Limits(max_body_bytes=size)

    assert a_new_message(a_queue(), body=body, limits=limits).message.size == size
    with pytest.raises(TooLarge):
        a_new_message(a_queue(), body=body, limits=Limits(max_body_bytes=size - 1))


@pytest.mark.parametrize(("of_the_queue", "of_the_server"), [(10, 100), (100, 10), (None, 10)])
def test_the_smaller_of_the_queues_and_the_servers_limit_counts(of_the_queue, of_the_server):
    queue = a_queue(max_body_bytes=of_the_queue)
    limits = Limits(max_body_bytes=of_the_server)

    assert a_new_message(queue, body="x" * 10, limits=limits).message.size == 10
    with pytest.raises(TooLarge, match="11 bytes"):
        a_new_message(queue, body="x" * 11, limits=limits)


@pytest.mark.parametrize("attributes", [{"ab": "€"}, {"€": "ab"}, {"a": "b", "ä": "b"}], ids=ascii)
def test_attributes_are_counted_in_bytes_with_their_names(attributes):
    limits = Limits(max_attribute_bytes=5)

    new = a_new_message(a_queue(), attributes=attributes, limits=limits)

    assert new.content.attributes == attributes
    with pytest.raises(TooLarge):
        a_new_message(a_queue(), attributes=attributes, limits=Limits(max_attribute_bytes=4))


def test_a_draft_needs_nothing_but_a_body():
    assert a_draft(body="1").body == "1"


def test_the_queue_may_derive_missing_dedup_keys_from_the_content():
    queue = a_queue(dedup_by_content=True)

    made = a_new_message(queue, body='"h\\u00e4"').message.dedup_key
    own = a_new_message(queue, body='"hä"', dedup_key="own").message.dedup_key
    plain = a_new_message(a_queue(), body='"hä"').message.dedup_key

    assert made == hashlib.sha256("hä".encode()).hexdigest()
    assert (own, plain) == ("own", None)


@pytest.mark.parametrize("body", ["1", "null", '{"a": "b"}', '["x"]', ""])
def test_the_content_of_other_json_is_its_text_as_written(body):
    assert content_key(body) == hashlib.sha256(body.encode()).hexdigest()


def test_two_spellings_of_the_same_text_are_the_same_content():
    assert content_key('"a/b\\n"') == content_key('"a\\/b\\u000a"')


def test_the_options_of_a_job_are_kept():
    new = a_new_message(
        a_queue(),
        timeout_ms=5,
        retries_timeouts=True,
        route="eu",
        dedup_key="k",
        dedup_until=DedupUntil.ENDED,
    ).message

    assert (new.timeout_ms, new.retries_timeouts, new.route) == (5, True, "eu")
    assert new.dedup_until is DedupUntil.ENDED


def test_dedup_until_window_is_the_same_as_none():
    assert a_new_message(a_queue(), dedup_until=DedupUntil.WINDOW).message.dedup_until is None


def test_a_key_made_of_the_content_can_be_held_as_well():
    queue = a_queue(dedup_by_content=True)

    assert a_new_message(queue, dedup_until=DedupUntil.CLAIMED).message.dedup_key is not None


@pytest.mark.parametrize(
    "wrong",
    [
        {"timeout_ms": 0},
        {"timeout_ms": 400 * DAY},
        {"route": ""},
        {"route": "a\0b"},
        {"dedup_until": DedupUntil.ENDED},
        {"dedup_until": DedupUntil.CLAIMED},
    ],
)
def test_invalid_options_of_a_job_are_rejected(wrong):
    with pytest.raises(InvalidRequest):
        a_new_message(a_queue(), **wrong)
