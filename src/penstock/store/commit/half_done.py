"""What an event loop has prepared and leaves to the writer thread to commit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from penstock.store.commit.session import Request, SqlSession


class HalfDone(msgspec.Struct, frozen=True):
    """A batch whose statements have run and whose commit is to come."""

    session: SqlSession
    batch: list[Request]
    answers: Sequence[Any]
    woken: Mapping[int, int]
    loop: asyncio.AbstractEventLoop
    resume: Callable[[], None]
