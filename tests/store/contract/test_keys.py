"""API keys in the store."""

import pytest
from msgspec.structs import replace

from penstock.domain.access.api_key import Role
from penstock.domain.errors import PenstockError
from tests.clocks import NOON
from tests.factories import a_key


def keys(desk):
    return desk.read(lambda s: s.keys.all())


def test_a_key_is_kept_as_it_was_made(desk):
    key = a_key(roles=(Role.PRODUCE, Role.READ), queues=("mail.*", "post"))

    desk.write(lambda s: s.keys.add(key))

    assert keys(desk) == [key]


def test_keys_are_listed_in_the_order_of_their_making(desk):
    made = [a_key(key_id=name, created_at=NOON + at) for name, at in [("c", 1), ("a", 2), ("b", 1)]]
    for key in made:
        desk.write(lambda s, key=key: s.keys.add(key))

    assert [key.key_id for key in keys(desk)] == ["b", "c", "a"]


def test_a_revoked_key_says_since_when(desk):
    key, other = a_key(), a_key(created_at=NOON + 1)
    desk.write(lambda s: s.keys.add(key))
    desk.write(lambda s: s.keys.add(other))

    assert desk.write(lambda s: s.keys.revoke(key.key_id, now=NOON + 5))

    assert keys(desk) == [replace(key, revoked_at=NOON + 5), other]


def test_a_key_is_revoked_once(desk):
    key = a_key()
    desk.write(lambda s: s.keys.add(key))
    desk.write(lambda s: s.keys.revoke(key.key_id, now=NOON + 5))

    assert not desk.write(lambda s: s.keys.revoke(key.key_id, now=NOON + 6))
    assert not desk.write(lambda s: s.keys.revoke("nobody", now=NOON))
    assert keys(desk)[0].revoked_at == NOON + 5


def test_the_same_key_twice_is_refused_and_troubles_nobody_else(desk):
    key = a_key()
    desk.write(lambda s: s.keys.add(key))

    with desk.together():
        twice = desk.store.write(lambda s: s.keys.add(key))
        other = desk.store.write(lambda s: s.queues.number_of())

    with pytest.raises(PenstockError) as refusal:
        twice.result()
    assert refusal.value.code == "internal"
    assert other.result() == 0
    assert keys(desk) == [key]
