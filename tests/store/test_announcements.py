"""Wake-ups of commits are collected, and announced together."""

from __future__ import annotations

import select
from collections.abc import Iterator

import pytest

from penstock.store.announcements import MAX_QUEUES, Announcements, add_pairs, encode


@pytest.fixture
def announcements() -> Iterator[Announcements]:
    announcements = Announcements()
    yield announcements
    announcements.close()


def has_signal(announcements: Announcements) -> bool:
    return bool(select.select([announcements.signal], [], [], 0)[0])


def test_counts_of_several_commits_are_added_and_taken_once(announcements):
    announcements.add({1: 2, 2: 1})
    announcements.add({1: 3})

    assert dict(announcements.take()) == {1: 5, 2: 1}
    assert announcements.take() == []


def test_the_thread_is_woken_again_only_after_it_has_taken_what_there_was(announcements):
    announcements.add({1: 1})
    announcements.clear_signal()
    announcements.add({1: 1})
    assert not has_signal(announcements)

    announcements.take()
    announcements.add({1: 1})
    assert has_signal(announcements)


def test_what_is_announced_is_read_back_however_many_queues_there_are():
    woken = {queue_no: queue_no + 1 for queue_no in range(MAX_QUEUES + 1)}
    found: dict[int, int] = {0: 1}

    texts = list(encode(list(woken.items())))
    for text in texts:
        add_pairs(found, text.split())

    assert len(texts) == 2
    assert found == {**woken, 0: 2}
