"""Telling everybody who waits for a batch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from penstock.domain.errors import PenstockError
from penstock.store.commit.session import Request
from penstock.store.commit.ticket import running_loop

_log = logging.getLogger("penstock.store")


def answer_all(batch: Sequence[Request], answers: Sequence[Any]) -> None:
    """One call back into each event loop, however many wait there."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[Request, Any]]] = {}
    for request, answer in zip(batch, answers, strict=True):
        loop = request.ticket.loop
        if loop is None:
            request.ticket.answer(answer)
        else:
            loops.setdefault(loop, []).append((request, answer))
    here = running_loop() if loops else None
    for loop, pairs in loops.items():
        try:
            if here is loop:
                _answer_pairs(pairs)
            else:
                loop.call_soon_threadsafe(_answer_pairs, pairs)
        except RuntimeError:  # the loop is closed: nobody waits there any more
            continue


def internal(error: BaseException) -> PenstockError:
    """A mistake of ours, as the answer to the request that met it."""
    wrapped = PenstockError(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


def _answer_pairs(pairs: list[tuple[Request, Any]]) -> None:
    for request, answer in pairs:
        try:
            request.ticket.answer(answer)
        except Exception:  # a mistake in one callback must not leave the others waiting
            _log.exception("a callback failed")
