"""What is done once per cluster and interval, and texts that are kept as a whole."""

from __future__ import annotations

import pytest

from penstock.domain.document import Document, Latest
from penstock.domain.errors import PenstockError
from penstock.ports.store import Session
from tests.store.driver import StoreDriver


def take(
    driver: StoreDriver, name: str = "tidy", for_ms: int = 100, holder: str = ""
) -> int | None:
    return driver.write(lambda s: s.duties.take(name, for_ms=for_ms, now=driver.now, holder=holder))


def test_a_duty_is_taken_by_whoever_comes_first_and_not_again_until_its_time_is_over(driver):
    assert take(driver, holder="a") == 0
    assert take(driver, holder="b") is None
    assert driver.read(lambda s: s.duties.until("tidy")) == driver.now + 100

    driver.clock.advance(ms=99)
    assert take(driver) is None
    driver.clock.advance(ms=1)
    assert take(driver) == 1


def test_duties_do_not_know_of_each_other(driver):
    assert take(driver, "one") == 0
    assert take(driver, "other") == 0
    assert driver.read(lambda s: s.duties.until("third")) is None


def test_whoever_fails_leaves_the_duty_to_others(driver, caplog):
    def take_and_break(session: Session) -> None:
        assert session.duties.take("tidy", for_ms=100, now=driver.now) == 0
        raise PenstockError("broken")

    with pytest.raises(PenstockError):
        driver.write(take_and_break)

    assert take(driver) == 0


def test_a_shorter_interval_counts_at_once(driver):
    take(driver, for_ms=60_000)
    driver.clock.advance(ms=1)

    assert take(driver, for_ms=100) == 1


def test_ticks_are_counted_until_they_begin_anew(driver):
    counted = []
    for _ in range(3):
        counted.append(take(driver))
        driver.clock.advance(ms=100)
    driver.write(lambda s: s.duties.restart("tidy"))

    assert [*counted, take(driver)] == [0, 1, 2, 0]


def test_a_document_is_put_replaced_and_removed(driver):
    def find() -> Document | None:
        return driver.read(lambda s: s.documents.find("rules"))

    assert find() is None
    first = driver.write(lambda s: s.documents.put("rules", '{"ü": "\\n"}', now=driver.now))
    assert find() == first == Document("rules", '{"ü": "\\n"}', 1, driver.now)

    driver.clock.advance(ms=5)
    second = driver.write(lambda s: s.documents.put("rules", "{}", now=driver.now))
    assert find() == second == Document("rules", "{}", 2, driver.now)
    assert driver.write(lambda s: s.documents.to_change("rules", now=driver.now)) == second

    assert driver.write(lambda s: s.documents.remove("rules", now=driver.now))
    assert not driver.write(lambda s: s.documents.remove("rules", now=driver.now))
    assert find() is None
    assert driver.write(lambda s: s.documents.to_change("rules", now=driver.now)) is None

    again = driver.write(lambda s: s.documents.put("rules", "{}", now=driver.now))
    assert again.version == 4, "it never goes back, so that caches know"


def test_whoever_remembers_a_version_hears_of_a_removal(driver):
    def latest() -> Latest:
        return driver.read(lambda s: s.documents.latest("rules"))

    assert latest() == Latest(None, 0)
    driver.write(lambda s: s.documents.put("rules", "{}", now=driver.now))
    assert latest() == Latest("{}", 1)
    assert driver.write(lambda s: s.documents.remove("rules", now=driver.now)) == 2
    assert latest() == Latest(None, 2)


# ---- leading


def lead(driver: StoreDriver, holder: str, for_ms: int = 100, at: int = 0) -> bool:
    now = driver.now + at
    return driver.write(lambda s: s.duties.lead("scale", holder=holder, for_ms=for_ms, now=now))


def test_whoever_leads_goes_on_leading_while_it_asks_in_time(driver):
    assert lead(driver, "a")
    for _ in range(3):
        driver.clock.advance(ms=60)
        assert lead(driver, "a")
        assert not lead(driver, "b")


def test_another_one_leads_when_the_first_has_not_asked_in_time(driver):
    lead(driver, "a")
    driver.clock.advance(ms=100)

    assert lead(driver, "b")
    assert not lead(driver, "a")


def test_a_clock_that_goes_a_little_behind_takes_the_lead_from_nobody(driver):
    lead(driver, "a")

    assert not lead(driver, "b", at=-5)


def test_a_lead_that_ends_much_too_late_is_not_believed(driver):
    lead(driver, "a", at=1_000_000)

    assert lead(driver, "b")


def test_whoever_leaves_makes_way_at_once_and_only_for_itself(driver):
    lead(driver, "a")
    driver.write(lambda s: s.duties.leave("scale", holder="b"))
    assert not lead(driver, "b")

    driver.write(lambda s: s.duties.leave("scale", holder="a"))

    assert lead(driver, "b")
