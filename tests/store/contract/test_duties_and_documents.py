"""What is done once per cluster and interval, and texts that are kept as a whole."""

from __future__ import annotations

import pytest

from penstock.domain.document import Document, Latest
from penstock.domain.errors import PenstockError
from penstock.ports.store import Session
from tests.store.desk import Desk


def take(desk: Desk, name: str = "tidy", for_ms: int = 100, holder: str = "") -> int | None:
    return desk.write(lambda s: s.duties.take(name, for_ms=for_ms, now=desk.now, holder=holder))


def test_a_duty_is_taken_by_whoever_comes_first_and_not_again_until_its_time_is_over(desk):
    assert take(desk, holder="a") == 0
    assert take(desk, holder="b") is None
    assert desk.read(lambda s: s.duties.until("tidy")) == desk.now + 100

    desk.clock.advance(ms=99)
    assert take(desk) is None
    desk.clock.advance(ms=1)
    assert take(desk) == 1


def test_duties_do_not_know_of_each_other(desk):
    assert take(desk, "one") == 0
    assert take(desk, "other") == 0
    assert desk.read(lambda s: s.duties.until("third")) is None


def test_whoever_fails_leaves_the_duty_to_others(desk, caplog):
    def take_and_break(session: Session) -> None:
        assert session.duties.take("tidy", for_ms=100, now=desk.now) == 0
        raise PenstockError("broken")

    with pytest.raises(PenstockError):
        desk.write(take_and_break)

    assert take(desk) == 0


def test_a_shorter_interval_counts_at_once(desk):
    take(desk, for_ms=60_000)
    desk.clock.advance(ms=1)

    assert take(desk, for_ms=100) == 1


def test_ticks_are_counted_until_they_begin_anew(desk):
    counted = []
    for _ in range(3):
        counted.append(take(desk))
        desk.clock.advance(ms=100)
    desk.write(lambda s: s.duties.restart("tidy"))

    assert [*counted, take(desk)] == [0, 1, 2, 0]


def test_a_document_is_put_replaced_and_removed(desk):
    def find() -> Document | None:
        return desk.read(lambda s: s.documents.find("rules"))

    assert find() is None
    first = desk.write(lambda s: s.documents.put("rules", '{"ü": "\\n"}', now=desk.now))
    assert find() == first == Document("rules", '{"ü": "\\n"}', 1, desk.now)

    desk.clock.advance(ms=5)
    second = desk.write(lambda s: s.documents.put("rules", "{}", now=desk.now))
    assert find() == second == Document("rules", "{}", 2, desk.now)
    assert desk.write(lambda s: s.documents.to_change("rules", now=desk.now)) == second

    assert desk.write(lambda s: s.documents.remove("rules", now=desk.now))
    assert not desk.write(lambda s: s.documents.remove("rules", now=desk.now))
    assert find() is None
    assert desk.write(lambda s: s.documents.to_change("rules", now=desk.now)) is None

    again = desk.write(lambda s: s.documents.put("rules", "{}", now=desk.now))
    assert again.version == 4, "it never goes back, so that caches know"


def test_whoever_remembers_a_version_hears_of_a_removal(desk):
    def latest() -> Latest:
        return desk.read(lambda s: s.documents.latest("rules"))

    assert latest() == Latest(None, 0)
    desk.write(lambda s: s.documents.put("rules", "{}", now=desk.now))
    assert latest() == Latest("{}", 1)
    assert desk.write(lambda s: s.documents.remove("rules", now=desk.now)) == 2
    assert latest() == Latest(None, 2)


# ---- leading


def lead(desk: Desk, holder: str, for_ms: int = 100, at: int = 0) -> bool:
    now = desk.now + at
    return desk.write(lambda s: s.duties.lead("scale", holder=holder, for_ms=for_ms, now=now))


def test_whoever_leads_goes_on_leading_while_it_asks_in_time(desk):
    assert lead(desk, "a")
    for _ in range(3):
        desk.clock.advance(ms=60)
        assert lead(desk, "a")
        assert not lead(desk, "b")


def test_another_one_leads_when_the_first_has_not_asked_in_time(desk):
    lead(desk, "a")
    desk.clock.advance(ms=100)

    assert lead(desk, "b")
    assert not lead(desk, "a")


def test_a_clock_that_goes_a_little_behind_takes_the_lead_from_nobody(desk):
    lead(desk, "a")

    assert not lead(desk, "b", at=-5)


def test_a_lead_that_ends_much_too_late_is_not_believed(desk):
    lead(desk, "a", at=1_000_000)

    assert lead(desk, "b")


def test_whoever_leaves_makes_way_at_once_and_only_for_itself(desk):
    lead(desk, "a")
    desk.write(lambda s: s.duties.leave("scale", holder="b"))
    assert not lead(desk, "b")

    desk.write(lambda s: s.duties.leave("scale", holder="a"))

    assert lead(desk, "b")
