"""Signals as an application sends them: `app.signal("approved:17", {"by": "ada"})`."""

from __future__ import annotations

from abc import ABC, abstractmethod

import msgspec

from penstock.api.jobs import signals
from penstock.api.jobs.signals import SendSignal, SentSignal
from penstock.client.backend import Backend
from penstock.client.values.json_values import json_of
from penstock.domain.duration import Duration, as_ms


class SignalMixin(ABC):
    """The part of an application that sends signals."""

    def signal(
        self, name: str, body: object = None, *, keep: Duration | None = None, tx: object = None
    ) -> SentSignal:
        """Send a signal: the jobs that wait for it continue.

        It is kept for 7 days, or for `keep`, for waits that begin later; until then it is the only
        signal of its name.  With `tx` it is sent if and only if the caller's transaction commits.
        """
        channel = self.backend_for(tx).channel
        return channel.request(signals.SEND, _record(body, keep), tx=tx, signal=name)

    async def signal_async(
        self, name: str, body: object = None, *, keep: Duration | None = None, tx: object = None
    ) -> SentSignal:
        channel = (await self.backend_for_async(tx)).channel
        return await channel.request_async(signals.SEND, _record(body, keep), tx=tx, signal=name)

    @abstractmethod
    def backend_for(self, tx: object) -> Backend: ...

    @abstractmethod
    async def backend_for_async(self, tx: object) -> Backend: ...


def _record(body: object, keep: Duration | None) -> SendSignal:
    keep_ms = None if keep is None else as_ms("keep", keep)
    return SendSignal(msgspec.Raw(json_of(body).encode()), keep_ms)
