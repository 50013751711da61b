"""A node's pusher and its HTTP client."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.ports.clock import Clock
from penstock.ports.sender import PushRequest, PushResponse, Sender
from penstock.runtime.pusher.outgoing import BackoffSettings
from penstock.runtime.pusher.pusher import Pusher, PusherSettings
from penstock.runtime.pusher.thread import PusherThread, WakeupEvent
from penstock.settings.push import PushSettings
from penstock.supervision.health import NodeHealth

if TYPE_CHECKING:
    from penstock.wiring.broker import Broker


class LazySender:
    """Creates the HTTP client with the first request: most nodes never need it."""

    def __init__(self, clock: Clock, push: PushSettings, health: NodeHealth) -> None:
        self._clock = clock
        self._push = push
        self._health = health
        self._made: Sender | None = None

    def send(self, request: PushRequest, then: Callable[[PushResponse], None]) -> None:
        if self._made is None:
            from penstock.outbound.http_sender import HttpSender

            push = self._push
            self._made = HttpSender(
                self._clock,
                connections=push.concurrency,
                keep_alive_ms=push.keep_alive_ms,
                denied=push.deny or "",
                health=self._health,
            )
        self._made.send(request, then)

    def close(self) -> None:
        if self._made is not None:
            self._made.close()


def pusher_thread(broker: Broker) -> PusherThread:
    push, wakeup = broker.settings.push, WakeupEvent()
    sender = LazySender(broker.clock, push, broker.health)
    backoff = BackoffSettings(
        retry_ms=push.retry_ms,
        honours_retry_after=push.honour_retry_after,
        max_retry_after_ms=push.max_retry_after_ms,
    )
    pusher = Pusher(
        broker.store,
        sender,
        broker.routes,
        broker.circuits,
        settings=PusherSettings(
            concurrency=push.concurrency,
            lease_ms=push.lease_ms,
            scan_ms=push.scan_ms,
            backoff=backoff,
        ),
        holder=f"pusher-{broker.dice.digits(12)}",
        wake=wakeup.wake,
        tally=broker.pushed,
        complete=lambda text: _completed(broker, text),
    )
    broker.listen(pusher.on_wakeup)
    drain_ms = broker.settings.server.drain_ms
    return PusherThread(
        pusher,
        sender,
        broker.clock,
        wakeup,
        drain_ms=drain_ms,
        health=broker.health,
        stuck_ms=broker.stuck_ms,
    )


def _completed(broker: Broker, text: str) -> str:
    """An envelope of SNS as it goes out of this node."""
    signer, server = broker.envelope_signer, broker.settings.server
    if not signer.is_loaded:
        signer.load().result()
    scheme = "https" if server.tls_cert else "http"
    host = "127.0.0.1" if server.host in ("", "0.0.0.0", "::") else server.host
    base = broker.settings.sqs.public_url or f"{scheme}://{host}:{server.port}"
    return signer.complete(text, base=base)


def own_sender(broker: Broker) -> Sender:
    """An HTTP client for the broker's own requests, such as alerts."""
    return LazySender(broker.clock, broker.settings.push, broker.health)
