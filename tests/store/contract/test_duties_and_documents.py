"""Duties, which run once per cluster and interval, and documents."""

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


def test_a_duty_is_taken_by_the_first_node_and_not_again_until_its_time_is_over(driver):
    assert take(driver, holder="a") == 0
    assert take(driver, holder="b") is None
    assert driver.read(lambda s: s.duties.until("tidy")) == driver.now + 100

    driver.clock.advance(ms=99)
    assert take(driver) is None
    driver.clock.advance(ms=1)
    assert take(driver) == 1


def test_duties_are_independent(driver):
    assert take(driver, "one") == 0
    assert take(driver, "other") == 0
    assert driver.read(lambda s: s.duties.until("third")) is None


def test_a_failed_transaction_leaves_the_duty_to_others(driver, caplog):
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


def test_ticks_are_counted_until_a_restart(driver):
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
    assert driver.write(lambda s: s.documents.lock("rules", now=driver.now)) == second

    assert driver.write(lambda s: s.documents.remove("rules", now=driver.now))
    assert not driver.write(lambda s: s.documents.remove("rules", now=driver.now))
    assert find() is None
    assert driver.write(lambda s: s.documents.lock("rules", now=driver.now)) is None

    again = driver.write(lambda s: s.documents.put("rules", "{}", now=driver.now))
    assert again.version == 4, "it never decreases, so that caches notice"


def test_a_removal_changes_the_version(driver):
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


def test_a_leader_stays_leader_while_it_renews_in_time(driver):
    assert lead(driver, "a")
    for _ in range(3):
        driver.clock.advance(ms=60)
        assert lead(driver, "a")
        assert not lead(driver, "b")


def test_another_node_leads_when_the_first_has_not_renewed_in_time(driver):
    lead(driver, "a")
    driver.clock.advance(ms=100)

    assert lead(driver, "b")
    assert not lead(driver, "a")


def test_a_clock_that_is_slightly_behind_does_not_end_a_lead(driver):
    lead(driver, "a")

    assert not lead(driver, "b", at=-5)


def test_a_lead_with_an_implausible_end_is_ignored(driver):
    lead(driver, "a", at=1_000_000)

    assert lead(driver, "b")


def test_a_leader_that_leaves_ends_only_its_own_lead_at_once(driver):
    lead(driver, "a")
    driver.write(lambda s: s.duties.leave("scale", holder="b"))
    assert not lead(driver, "b")

    driver.write(lambda s: s.duties.leave("scale", holder="a"))

    assert lead(driver, "b")
