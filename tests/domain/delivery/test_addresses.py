"""Denied addresses, in every notation."""

from __future__ import annotations

import pytest

from penstock.domain.delivery.addresses import AddressDenied, AddressFilter, literal, networks


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("169.254.169.254", "169.254.169.254"),
        ("2852039166", "169.254.169.254"),
        ("0xa9fea9fe", "169.254.169.254"),
        ("0XA9.0376.43518", "169.254.169.254"),
        ("169.254.43518", "169.254.169.254"),
        ("127.1", "127.0.0.1"),
        ("10.0.0.1.", "10.0.0.1"),
        ("0x", "0.0.0.0"),
        ("[::1]", "::1"),
        ("[::ffff:169.254.169.254]", "::ffff:a9fe:a9fe"),
    ],
)
def test_an_address_is_recognised_in_every_notation(host: str, address: str) -> None:
    assert str(literal(host)).removeprefix("::ffff:") in (address, address.removeprefix("::ffff:"))


@pytest.mark.parametrize("host", ["shop", "shop.example", "10.example", "0xshop", "a1", "1.2.x3"])
def test_a_name_is_not_an_address(host: str) -> None:
    assert literal(host) is None


@pytest.mark.parametrize(
    "host", ["256.1.1.1", "1.2.3.4.5", "4294967296", "1.2.3.256", "08.1", "a.1"]
)
def test_a_host_that_ends_in_a_number_but_is_not_an_address_is_rejected(host: str) -> None:
    with pytest.raises(ValueError, match="address"):
        literal(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::ffff:127.0.0.1", "64:ff9b::7f00:1"])
def test_a_network_of_mapped_addresses_denies_the_addresses_inside(host: str) -> None:
    with pytest.raises(AddressDenied, match="127"):
        AddressFilter("::ffff:127.0.0.0/104").check(host)


@pytest.mark.parametrize(
    "host",
    [
        "::ffff:169.254.169.254",
        "::169.254.169.254",
        "2002:a9fe:a9fe::1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::a9fe:a9fe",
        "64:ff9b:1:a9fe:a9:fe00::",
        "2001:0:a9fe:a9fe::1",
        "2001:0:808:808:0:0:5601:5601",
    ],
)
def test_an_address_inside_another_is_denied_as_if_it_came_alone(host: str) -> None:
    with pytest.raises(AddressDenied, match=r"169\.254\.0\.0/16"):
        AddressFilter().check(host)


@pytest.mark.parametrize(
    "host", ["::1", "64:ff9b::808:808", "64:ff9b:1::808:808", "2001:0:808:808:0:0:f7f7:f7f7"]
)
def test_an_address_that_carries_an_allowed_one_is_allowed(host: str) -> None:
    assert AddressFilter().check(host) == host


def test_a_network_of_addresses_that_carry_others_is_denied_as_it_is_written() -> None:
    address_filter = AddressFilter("2002::/16")

    with pytest.raises(AddressDenied, match="2002::/16"):
        address_filter.check("2002:0a00:0001::1")
    assert address_filter.check("10.0.0.1") == "10.0.0.1"


def test_an_invalid_network_is_an_error() -> None:
    with pytest.raises(ValueError, match="does not appear to be"):
        networks("10.0.0.0/8, nonsense")
