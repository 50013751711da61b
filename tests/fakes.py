"""Stand-ins for the outside world, and for nothing else."""

from __future__ import annotations

from collections.abc import Callable

from penstock.ports.sender import Request, Response


class FakeSender:
    """Keeps what it is given until it is told what to say."""

    def __init__(self) -> None:
        self.open: list[tuple[Request, Callable[[Response], None]]] = []
        self.sent: list[Request] = []

    def send(self, request: Request, then: Callable[[Response], None]) -> None:
        self.sent.append(request)
        self.open.append((request, then))

    def answer(self, status: int | None = 200, **response: object) -> list[Request]:
        """All that wait for an answer get this one."""
        answered, self.open = self.open, []
        for _, then in answered:
            then(Response(status=status, **response))  # type: ignore[arg-type]
        return [request for request, _ in answered]

    def close(self) -> None:
        self.answer(None, error="broken off", is_broken_off=True)
