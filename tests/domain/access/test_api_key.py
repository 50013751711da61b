"""API keys: roles, queue patterns, secrets."""

import re

import pytest

from penstock.domain.access.api_key import (
    ANYONE,
    Role,
    allow,
    caller_of,
    check_patterns,
    hash_secret,
    matches,
    sees,
    signing_secret,
)
from penstock.domain.errors import Forbidden, InvalidRequest
from tests.clocks import NOON
from tests.factories import a_key


@pytest.mark.parametrize("role", Role)
def test_a_key_opens_what_its_role_is_for(role):
    caller = caller_of(a_key(roles=(role,)))

    allow(caller, role)


@pytest.mark.parametrize("wanted", Role)
@pytest.mark.parametrize("held", Role)
def test_a_key_opens_nothing_else_but_operators_may_read(held, wanted):
    if held is wanted or (held, wanted) == (Role.OPERATE, Role.READ):
        return
    caller = caller_of(a_key(roles=(held,)))

    with pytest.raises(Forbidden, match=wanted.value):
        allow(caller, wanted)


def test_an_operator_may_also_read():
    allow(caller_of(a_key(roles=(Role.OPERATE,))), Role.READ)


def test_a_key_may_have_several_roles():
    caller = caller_of(a_key(roles=(Role.PRODUCE, Role.CONSUME)))

    allow(caller, Role.PRODUCE)
    allow(caller, Role.CONSUME)


@pytest.mark.parametrize(
    ("patterns", "queue", "is_open"),
    [
        (("*",), "mail", True),
        (("mail",), "mail", True),
        (("mail",), "mail2", False),
        (("mail",), "Mail", False),
        (("mail.*",), "mail.out", True),
        (("mail.*",), "mail", False),
        (("a", "b-?"), "b-1", True),
        (("a", "b-?"), "b-10", False),
        ((), "mail", False),
    ],
)
def test_a_key_is_for_the_queues_its_patterns_name(patterns, queue, is_open):
    caller = caller_of(a_key(queues=patterns))

    assert sees(caller, queue) is is_open
    if is_open:
        allow(caller, Role.PRODUCE, queue)
    else:
        with pytest.raises(Forbidden, match=queue):
            allow(caller, Role.PRODUCE, queue)


def test_without_keys_anyone_may_do_anything_anywhere():
    for role in Role:
        allow(ANYONE, role, "mail")


def test_only_the_right_secret_fits():
    key = a_key(secret="open sesame")

    assert matches(key, "open sesame")
    assert not matches(key, "open barley")


def test_a_revoked_key_fits_nothing():
    assert not matches(a_key(secret="open sesame", revoked_at=NOON), "open sesame")


def test_the_secret_itself_is_not_kept():
    assert "open sesame" not in str(a_key(secret="open sesame"))
    assert hash_secret("a") != hash_secret("b")


@pytest.mark.parametrize("patterns", [("*",), ("a", "b.*"), ("x" * 80,)])
def test_patterns_of_up_to_80_characters_are_accepted(patterns):
    assert check_patterns(patterns) == patterns


@pytest.mark.parametrize(
    "patterns", [(), ("",), ("a", ""), ("x" * 81,), ("a b",), ("a\t",), ("\0",)]
)
def test_patterns_that_could_not_be_kept_or_match_nothing_are_refused(patterns):
    with pytest.raises(InvalidRequest):
        check_patterns(patterns)


def test_a_key_signs_with_a_secret_of_its_own_that_is_always_the_same():
    ours = signing_secret("5d0c3a91fe", secret=b"of the store")

    assert ours == signing_secret("5d0c3a91fe", secret=b"of the store")
    assert ours != signing_secret("5d0c3a91ff", secret=b"of the store")
    assert ours != signing_secret("5d0c3a91fe", secret=b"of another store")
    assert re.fullmatch(r"[A-Za-z0-9_-]{40}", ours), "it goes into URLs as it is"
