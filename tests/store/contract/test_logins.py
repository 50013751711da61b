"""Logins of the console in the store, and the nodes that share it."""

from __future__ import annotations

import pytest

from penstock.domain.access.api_key import Role
from penstock.domain.access.login import Login, hash_token
from penstock.domain.errors import Unauthenticated
from penstock.outbound.dice import SystemDice
from penstock.services.access import FRESH_MS, Keyring, KeyService, LoginService
from tests.clocks import NOON, ManualClock

HOUR = 3_600_000


def test_a_login_is_kept_until_it_is_removed(driver):
    login = Login(hash_token("a"), "key-1", NOON + HOUR)
    driver.write(lambda s: s.logins.add(login))
    assert driver.read(lambda s: s.logins.find(login.token_hash)) == login

    driver.write(lambda s: s.logins.remove(login.token_hash))

    assert driver.read(lambda s: s.logins.find(login.token_hash)) is None


def test_expired_logins_are_pruned(driver):
    old, new = Login("old", "key", NOON), Login("new", "key", NOON + 1)
    for login in (old, new):
        driver.write(lambda s, login=login: s.logins.add(login))

    assert driver.write(lambda s: s.logins.prune(now=NOON)) == 1

    assert driver.read(lambda s: (s.logins.find("old"), s.logins.find("new"))) == (None, new)


def test_a_login_counts_on_every_node_and_ends_on_all_of_them(driver):
    clock = ManualClock()
    keys = KeyService(driver.store, clock, SystemDice())
    made = keys.create("shop", roles=(Role.READ,)).result()

    def a_node() -> LoginService:
        ring = Keyring(keys, required="always")
        ring.take(keys.all().result())
        return LoginService(driver.store, ring, clock, SystemDice(), valid_ms=HOUR)

    here, there = a_node(), a_node()
    opened = here.open(made.secret).result()
    assert not there.is_fresh(opened.token)
    for node in (here, there):
        node.load(opened.token).result()
        assert node.caller(opened.token, opened.page_token).name == "shop"

    here.close(opened.token).result()

    assert here.find(opened.token) is None
    clock.advance(ms=FRESH_MS)
    assert not there.is_fresh(opened.token)
    there.load(opened.token).result()
    assert there.find(opened.token) is None


def test_a_read_in_progress_does_not_bring_an_ended_login_back(driver):
    clock = ManualClock()
    keys = KeyService(driver.store, clock, SystemDice())
    made = keys.create("shop", roles=(Role.READ,)).result()
    ring = Keyring(keys, required="always")
    ring.take(keys.all().result())
    logins = LoginService(driver.store, ring, clock, SystemDice(), valid_ms=HOUR)
    opened = logins.open(made.secret).result()
    ended = logins.close(opened.token)

    logins.load(opened.token).result()  # may be read before the login is removed

    ended.result()
    assert logins.find(opened.token) is None


def test_a_key_is_rejected_after_its_expiry_and_its_use_is_noted(driver):
    clock = ManualClock()
    keys = KeyService(driver.store, clock, SystemDice())
    made = keys.create("shop", roles=(Role.READ,), expires_at=clock.now() + HOUR).result()
    ring = Keyring(keys, required="always")
    ring.take(keys.all().result())
    assert ring.caller(made.secret).name == "shop"
    ring.take(keys.all().result())
    [key] = driver.write(lambda s: s.keys.all())  # after the write of the use
    assert key.last_used_at == clock.now()

    clock.advance(ms=HOUR)
    ring.take(keys.all().result())

    with pytest.raises(Unauthenticated):
        ring.caller(made.secret)
