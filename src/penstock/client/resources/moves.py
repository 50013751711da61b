"""Move tasks: messages moved out of a queue in the background."""

from __future__ import annotations

from penstock.api import moves
from penstock.api.moves import LatestMoves, Move, StartMove
from penstock.client.channel import Channel


class MoveClient:
    def __init__(self, channel: Channel) -> None:
        self._request = channel.request

    def start(
        self, queue: str, *, to: str | None = None, max_per_second: int | None = None
    ) -> Move:
        """Start moving to the queue `to`, or each message to the queue it died in."""
        wanted = StartMove(to=to, max_per_second=max_per_second)
        return self._request(moves.START, wanted, queue=queue)

    def list(self, queue: str, *, limit: int = 100) -> list[Move]:
        """List the latest move tasks out of `queue`, newest first."""
        return self._request(moves.LIST, query=LatestMoves(limit=limit), queue=queue).moves

    def get(self, move_id: str) -> Move:
        return self._request(moves.GET, move=move_id)

    def cancel(self, move_id: str) -> Move:
        return self._request(moves.CANCEL, move=move_id)
