"""Which addresses nothing is ever sent to, whatever a route says.

Behind link-local addresses clouds serve the secrets of their machines; a route, or a name that
resolves to such an address, must not turn a delivery into a request for them.  Addresses that hide
another one inside (mapped, 6to4, NAT64) count as the one inside.
"""

from __future__ import annotations

import ipaddress
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
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Refused(OSError):
    """The connection is not made; an OSError, because that is what not to connect is."""


class Guard:
    def __init__(self, denied: str = "") -> None:
        """`denied`: more networks, with commas between; raises ValueError."""
        self._denied: Sequence[Network] = (*_NEVER, *networks(denied))

    def check(self, host: str) -> str:
        """Return an address, or raise Refused."""
        address = _inner(ipaddress.ip_address(host.partition("%")[0]))
        for network in self._denied:
            if address.version == network.version and address in network:
                raise Refused(f"nothing is sent to {host}: it lies in {network}")
        return host


def networks(text: str) -> list[Network]:
    """Raises ValueError."""
    return [ipaddress.ip_network(part.strip()) for part in text.split(",") if part.strip()]


def _inner(address: Address) -> Address:
    if not isinstance(address, ipaddress.IPv6Address):
        return address
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address
