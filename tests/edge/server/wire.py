"""The transport of a connection without a network."""

from __future__ import annotations

import asyncio
from typing import Any


class Wire(asyncio.Transport):
    """Records what a connection writes, and whether it is open and reading."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.is_open = True
        self.is_paused = False

    def write(self, data: Any) -> None:
        self.written.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return sum(map(len, self.written))  # the peer reads nothing

    def close(self) -> None:
        self.is_open = False

    abort = close

    def is_closing(self) -> bool:
        return not self.is_open

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False
