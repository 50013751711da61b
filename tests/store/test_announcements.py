"""Hints of commits are collected, and announced together."""

from __future__ import annotations

import select
from collections.abc import Iterator

import pytest

from penstock.store.announcements import (
    MAX_CHARS,
    MAX_ENDED,
    Announcements,
    Hints,
    decode,
    encode,
)


@pytest.fixture
def announcements() -> Iterator[Announcements]:
    announcements = Announcements()
    yield announcements
    announcements.close()


def has_signal(announcements: Announcements) -> bool:
    return bool(select.select([announcements.signal], [], [], 0)[0])


def test_hints_of_several_commits_are_added_and_taken_once(announcements):
    announcements.add(Hints({1: 2, 2: 1}, ["a"]))
    announcements.add(Hints({1: 3}, ["b", "a"]))

    assert announcements.take() == Hints({1: 5, 2: 1}, ["a", "b"])
    assert not announcements.take()


def test_the_thread_is_woken_again_only_after_it_has_taken_what_there_was(announcements):
    announcements.add(Hints({1: 1}))
    announcements.clear_signal()
    announcements.add(Hints(ended=["a"]))
    assert not has_signal(announcements)

    announcements.take()
    announcements.add(Hints(ended=["b"]))
    assert has_signal(announcements)


def test_what_only_this_process_waits_for_wakes_no_other(announcements):
    announcements.add(Hints(ended_here=["a"]))

    assert not has_signal(announcements)
    assert not announcements.take()


def test_a_purge_announces_a_limited_number_of_messages(announcements):
    for start in range(0, 4 * MAX_ENDED, MAX_ENDED // 2):
        ended = [str(no) for no in range(start, start + MAX_ENDED // 2)]
        announcements.add(Hints(ended=ended))

    assert len(announcements.take().ended) == MAX_ENDED


def test_what_is_announced_is_read_back_however_much_there_is():
    hints = Hints(
        {queue_no: queue_no + 1 for queue_no in range(2_000)},
        [f"0190a1b2-0000-7000-8000-{no:012}" for no in range(500)],
    )

    texts = list(encode(hints))

    assert len(texts) > 2
    assert max(map(len, texts)) <= MAX_CHARS
    assert decode(texts) == hints
    assert decode([*texts, "0:2 1:1"]).woken == {**hints.woken, 0: 3, 1: 3}
