"""Wires Penstock's in-process API to the seam of `bench.inprocess`."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path

from bench.inprocess import Embedded, Handle
from bench.payload import body_of
from penstock.domain.message.draft import Draft
from penstock.domain.message.lease import Lease, Verb
from penstock.domain.queue.queue import QueueSettings
from penstock.settings import Settings
from penstock.wiring.broker import open_broker

CLAIM = 100
LOOK_AGAIN = 1.0  # seconds; a wake-up is a hint that may get lost


class _Penstock:
    """A broker and one handler thread that sleeps until the store says that something came."""

    def __init__(self, folder: Path, handle: Handle) -> None:
        self._broker = open_broker(Settings(data=str(folder)))
        self._queue = self._broker.queues.put("events", QueueSettings()).result().view.queue
        self._handle = handle
        self._woken = threading.Event()
        self._is_closing = False
        self._broker.listen(self._heard)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def send(self, number: int) -> None:
        messages = self._broker.messages
        messages.send(
            [messages.draft(self._queue, Draft(body=json.dumps(body_of(number))))]
        ).result()

    def close(self) -> None:
        self._is_closing = True
        self._woken.set()
        self._thread.join()
        self._broker.close()

    def _heard(self, woken: Mapping[int, int]) -> None:
        self._woken.set()

    def _run(self) -> None:
        messages = self._broker.messages
        while not self._is_closing:
            self._woken.clear()
            claimed = messages.claim(self._queue, limit=CLAIM).result()
            for _, content in claimed.messages:
                self._handle(json.loads(content.body)["number"])
            if claimed.messages:
                leases = [Lease.of(message) for message, _ in claimed.messages]
                messages.act([messages.plan(lease, Verb.COMPLETE) for lease in leases]).result()
            else:
                self._woken.wait(LOOK_AGAIN)


def open_penstock(folder: Path, handle: Handle) -> Embedded:
    """Opens a queue in `folder`; its handler calls `handle` with the number of the event."""
    return _Penstock(folder, handle)
