"""Messages on the move between the queues of a server elsewhere."""

from __future__ import annotations

from urllib.parse import quote

import msgspec

from penstock.client.remote.answers import Move
from penstock.client.remote.transport import Transport


class _Moves(msgspec.Struct):
    moves: list[Move]


_move = msgspec.json.Decoder(Move)
_moves = msgspec.json.Decoder(_Moves)


class RemoteMoves:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def start(
        self, queue: str, *, to: str | None = None, max_per_second: int | None = None
    ) -> Move:
        """Out of `queue`, to where each message died or to the queue `to`; returns at once."""
        wanted = {"to": to, "max_per_second": max_per_second}
        body = {key: value for key, value in wanted.items() if value is not None}
        return _move.decode(self._transport.call("POST", _of_queue(queue), body=body).body)

    def list(self, queue: str) -> list[Move]:
        """The latest ones out of `queue`, newest first."""
        return _moves.decode(self._transport.call("GET", _of_queue(queue)).body).moves

    def get(self, move_id: str) -> Move:
        return _move.decode(self._transport.call("GET", _path(move_id)).body)

    def cancel(self, move_id: str) -> Move:
        return _move.decode(self._transport.call("POST", f"{_path(move_id)}/cancel").body)


def _of_queue(queue: str) -> str:
    return f"/v1/queues/{quote(queue, safe='')}/moves"


def _path(move_id: str) -> str:
    return f"/v1/moves/{quote(move_id, safe='')}"
