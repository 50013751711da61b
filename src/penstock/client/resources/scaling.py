"""Fleets: current and wanted numbers of workers, and the reasons."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.api import scaling
from penstock.api.operation import PageQuery
from penstock.api.scaling import Decided, Fleet
from penstock.client.channel import Channel


class ScalingClient:
    def __init__(self, channel: Channel) -> None:
        self._request = channel.request

    def list(self) -> Sequence[Fleet]:
        """List fleets by name."""
        return self._request(scaling.LIST).fleets

    def get(self, fleet: str) -> Fleet:
        """Raises FleetNotFound."""
        return self._request(scaling.GET, fleet=fleet)

    def decisions(self, fleet: str, *, limit: int = 10) -> Sequence[Decided]:
        """List decisions, newest first; raises FleetNotFound."""
        query = PageQuery(limit=limit)
        return self._request(scaling.DECISIONS, query=query, fleet=fleet).decisions

    def wanted(self, fleet: str) -> int:
        """Return the wanted number of workers; raises FleetNotFound and FleetNotWatched."""
        return self._request(scaling.WANTED, fleet=fleet).value
