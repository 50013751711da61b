"""API keys in the store."""

import pytest
from msgspec.structs import replace

from penstock.domain.access.api_key import Role, hash_secret
from penstock.domain.errors import PenstockError
from penstock.outbound.dice import SystemDice
from penstock.services.access import Keyring, KeyService
from tests.clocks import NOON, ManualClock
from tests.factories import a_key


def keys(driver):
    return driver.read(lambda s: s.keys.all())


def test_a_key_is_kept_as_it_was_made(driver):
    key = a_key(roles=(Role.PRODUCE, Role.READ), queues=("mail.*", "post"))

    driver.write(lambda s: s.keys.add(key))

    assert keys(driver) == [key]


def test_keys_are_listed_in_the_order_of_their_making(driver):
    made = [a_key(key_id=name, created_at=NOON + at) for name, at in [("c", 1), ("a", 2), ("b", 1)]]
    for key in made:
        driver.write(lambda s, key=key: s.keys.add(key))

    assert [key.key_id for key in keys(driver)] == ["b", "c", "a"]


def test_a_revoked_key_shows_when_it_was_revoked(driver):
    key, other = a_key(), a_key(created_at=NOON + 1)
    driver.write(lambda s: s.keys.add(key))
    driver.write(lambda s: s.keys.add(other))

    assert driver.write(lambda s: s.keys.revoke(key.key_id, now=NOON + 5))

    assert keys(driver) == [replace(key, revoked_at=NOON + 5), other]


def test_a_key_is_revoked_once(driver):
    key = a_key()
    driver.write(lambda s: s.keys.add(key))
    driver.write(lambda s: s.keys.revoke(key.key_id, now=NOON + 5))

    assert not driver.write(lambda s: s.keys.revoke(key.key_id, now=NOON + 6))
    assert not driver.write(lambda s: s.keys.revoke("unknown", now=NOON))
    assert keys(driver)[0].revoked_at == NOON + 5


def test_a_duplicate_key_is_refused_and_affects_no_other_request(driver):
    key = a_key()
    driver.write(lambda s: s.keys.add(key))

    with driver.together():
        twice = driver.store.write(lambda s: s.keys.add(key))
        other = driver.store.write(lambda s: s.queues.count())

    with pytest.raises(PenstockError) as refusal:
        twice.result()
    assert refusal.value.code == "internal"
    assert other.result() == 0
    assert keys(driver) == [key]


def test_an_expiry_and_the_latest_use_are_kept(driver):
    key = a_key(expires_at=NOON + 60_000)
    driver.write(lambda s: s.keys.add(key))

    for at in (NOON + 7, NOON + 5):  # nodes note uses in any order
        driver.write(lambda s, at=at: s.keys.use(key.key_id, now=at))

    [kept] = keys(driver)
    assert kept == replace(key, last_used_at=NOON + 7)
    assert kept.is_usable(now=NOON + 59_999)
    assert not kept.is_usable(now=NOON + 60_000)
    assert not replace(kept, revoked_at=NOON).is_usable(now=NOON)


def test_a_key_may_be_presented_while_the_use_of_others_is_noted(driver):
    class Interrupted(str):
        """An id; another thread presents a key when it is looked at."""

        def __bool__(self) -> bool:
            ring.caller("pk_2_x")
            return True

    ring = Keyring(KeyService(driver.store, ManualClock(), SystemDice()), required="always")
    made = [
        a_key(key_id=key_id, secret_hash=hash_secret(f"pk_{key_id}_x"))
        for key_id in (Interrupted("1"), "2")
    ]
    for key in made:
        driver.write(lambda s, key=key: s.keys.add(replace(key, key_id=str(key.key_id))))
    ring.take(made)
    ring.caller("pk_1_x")

    ring.take(made)

    assert ring.caller("pk_2_x").key_id == "2"
