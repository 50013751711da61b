"""Addresses that no delivery may be sent to, whatever its route.

Clouds serve their machines' secrets at link-local addresses, so a delivery must not reach one,
neither by its route nor by a name that resolves to it.  An address that embeds another one
(IPv4-mapped or -compatible, 6to4, NAT64, Teredo) is denied if either is.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NEVER = tuple(
    map(
        ipaddress.ip_network,
        (
            "0.0.0.0/8",
            "169.254.0.0/16",  # link-local; most clouds serve metadata at 169.254.169.254
            "100.100.100.200/32",  # metadata: Alibaba
            "168.63.129.16/32",  # … Azure
            "192.0.0.192/32",  # … Oracle
            "224.0.0.0/4",
            "255.255.255.255/32",
            "::/128",
            "fe80::/10",
            "fd00:ec2::/32",  # metadata: AWS over IPv6
            "fd20:ce::254/128",  # … Google
            "ff00::/8",
        ),
    )
)
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")  # RFC 8215
_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
_MAX_PARTS = 4  # of an IPv4 address
_NUMERIC = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|0[0-7]*|[1-9][0-9]*")


class AddressDenied(OSError):
    """The address is denied.  An OSError, so that callers handle it like a failed connection."""


class AddressFilter:
    def __init__(self, denied: str = "") -> None:
        """`denied`: more networks, separated by commas; raises ValueError."""
        self._denied: Sequence[Network] = (*_NEVER, *networks(denied))

    def check(self, host: str) -> str:
        """Return the address, or raise AddressDenied if it is denied."""
        address = ipaddress.ip_address(host.partition("%")[0])
        for one in {address, *_carried_by(address)}:
            for network in self._denied:
                if one.version == network.version and one in network:
                    raise AddressDenied(f"deliveries to {host} are denied: it is in {network}")
        return host


def is_within(host: str, among: Sequence[Network]) -> bool:
    """Whether it is an address in one of the networks; a mapped IPv4 address counts as IPv4."""
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address.version == one.version and address in one for one in among)


def networks(text: str) -> list[Network]:
    """Raises ValueError."""
    return [_network(part.strip()) for part in text.split(",") if part.strip()]


def literal(host: str) -> Address | None:
    """The address that a URL's host stands for, in any notation that a resolver accepts.

    None: the host is a name.  A host that ends in a number must be an address (`2852039166`,
    `0xa9.0376.43518`), or ValueError is raised.
    """
    if host.startswith("["):
        return ipaddress.IPv6Address(host[1:-1])
    parts = host.removesuffix(".").split(".")
    if not _NUMERIC.fullmatch(parts[-1]):
        return None
    numbers = [_number(part) for part in parts]
    *first, last = numbers
    # The last number fills the remaining bytes.
    bits = 8 * (_MAX_PARTS - len(first))
    if len(parts) > _MAX_PARTS or any(one > 0xFF for one in first) or last >> bits:
        raise ValueError(f"{host[:100]!r} is not an address")
    for place, one in enumerate(first):
        last += one << (8 * (_MAX_PARTS - 1 - place))
    return ipaddress.IPv4Address(last)


def _number(part: str) -> int:
    """As C reads it: `0x` starts a hexadecimal and `0` an octal number."""
    if not _NUMBER.fullmatch(part) or len(part) > 40:
        raise ValueError(f"{part[:40]!r} is not a number in an address")
    if part[:2] in ("0x", "0X"):
        return int(part[2:] or "0", 16)
    return int(part, 8 if part.startswith("0") else 10)


def _network(text: str) -> Network:
    network = ipaddress.ip_network(text)
    if isinstance(network, ipaddress.IPv6Network) and network.subnet_of(_MAPPED):
        # Mapped addresses count as the IPv4 ones inside, and so do networks of them.
        inner = int(network.network_address) & 0xFFFF_FFFF
        return ipaddress.IPv4Network((inner, network.prefixlen - _MAPPED.prefixlen))
    return network


def _carried_by(address: Address) -> list[Address]:
    """The IPv4 addresses that an IPv6 address may lead to."""
    if not isinstance(address, ipaddress.IPv6Address):
        return []
    number = int(address)
    carried: list[Address | None] = [address.ipv4_mapped, address.sixtofour]
    carried += address.teredo or ()
    if address in _NAT64 or (address in _COMPATIBLE and number > 1):
        carried.append(ipaddress.IPv4Address(number & 0xFFFF_FFFF))
    if address in _LOCAL_NAT64:
        # After a prefix of 96 bits at the end; after one of 48 around bits 64 to 71 (RFC 6052).
        behind = (number >> 64 & 0xFFFF) << 16 | number >> 40 & 0xFFFF
        carried += [ipaddress.IPv4Address(n) for n in (number & 0xFFFF_FFFF, behind) if n]
    return [one for one in carried if one is not None]
