"""Which version of a document a node uses."""

from __future__ import annotations

from penstock.services.documents import DocumentVersion


def test_every_other_version_of_the_store_is_news_once():
    kept = DocumentVersion()

    assert [kept.is_news(version, now=0) for version in (0, 1, 1, 3)] == [False, True, False, True]


def test_a_version_that_was_put_here_is_not_undone_by_an_older_read():
    kept = DocumentVersion()
    kept.put(7, now=1_000)

    assert not kept.is_news(6, now=5_999)
    assert not kept.is_news(7, now=5_999)
    assert kept.is_news(8, now=5_999), "another node has put another one since"


def test_a_version_that_was_put_here_but_not_committed_is_forgotten_after_some_seconds():
    kept = DocumentVersion()
    kept.put(7, now=1_000)

    assert kept.is_news(6, now=6_000)
