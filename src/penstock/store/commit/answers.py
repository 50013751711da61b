"""Answers the tickets of a batch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Any

from penstock.domain.errors import PenstockError
from penstock.store.commit.session import StoreRequest
from penstock.store.commit.ticket import running_loop

_log = logging.getLogger("penstock.store")


def answer_all(batch: Sequence[StoreRequest], answers: Sequence[Any]) -> None:
    """Answer each request, with one callback per event loop, however many tickets it has."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[StoreRequest, Any]]] = {}
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
        except RuntimeError:  # the loop is closed: its tickets are no longer awaited
            continue


def fail_all(batch: Sequence[StoreRequest], error: PenstockError) -> None:
    """Answer every request of the batch with the same error."""
    answer_all(batch, [error] * len(batch))


def internal_error(error: BaseException) -> PenstockError:
    """An unexpected exception, wrapped as the answer to the request that raised it."""
    wrapped = PenstockError(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


def _answer_pairs(pairs: list[tuple[StoreRequest, Any]]) -> None:
    for request, answer in pairs:
        try:
            request.ticket.answer(answer)
        except Exception:  # one failing callback must not leave the others waiting
            _log.exception("a callback of a store request failed")
