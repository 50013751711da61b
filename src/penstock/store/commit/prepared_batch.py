"""A batch that an event loop has prepared and the writer thread commits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from penstock.store.commit.session import SqlSession, StoreRequest


class PreparedBatch(msgspec.Struct, frozen=True):
    """Its statements have run; its commit has not."""

    session: SqlSession
    batch: list[StoreRequest]
    answers: Sequence[Any]
    woken: Mapping[int, int]
    loop: asyncio.AbstractEventLoop
    resume: Callable[[], None]
