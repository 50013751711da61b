"""`penstock serve`: serve the broker over HTTP until it is stopped."""

from __future__ import annotations

import asyncio
import gc
import signal
import ssl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import uvloop

from penstock.edge.routes import accepts_encoded, routes
from penstock.edge.server.allocator import return_large_blocks
from penstock.edge.server.app import App
from penstock.edge.server.listener import HttpServer
from penstock.edge.server.request import Handler
from penstock.edge.server.router import HttpRoute, Router
from penstock.edge.server.traffic import Traffic
from penstock.edge.serving.definitions import apply_definitions
from penstock.edge.serving.embedded_workers import EmbeddedWorkers
from penstock.edge.serving.ready import print_ready, ready_text, url_of
from penstock.runtime.waiting_claims import WaitingClaims
from penstock.settings import Settings
from penstock.settings.values import ServerSettings
from penstock.wiring.broker import CLOSING_WAIT_MS, Broker, open_broker

# Framing and the fields around the bodies of a batch.
_ENVELOPE_BYTES = 64 * 1024

# Requests leave no reference cycles, so the collector need not run every 700 objects; that took
# 3 to 6 % of the time under load.
_GC_THRESHOLDS = (50_000, 20, 50)

# The writer thread must not wait 5 ms for the event loop to release the interpreter.
_SWITCH_SECONDS = 0.0005


def serve(settings: Settings, *, on_ready: Callable[[str], None] = print_ready) -> int:
    """Run until SIGINT or SIGTERM; returns the exit code."""
    broker = open_served_broker(settings)
    try:
        broker.refuse_public_without_keys()
        apply_definitions(broker)
        with scaling(broker):
            uvloop.run(_serve_until_stopped(broker, on_ready))
    finally:
        broker.close()
    return 0


def open_served_broker(settings: Settings) -> Broker:
    """Open the broker of a process that serves, and adjust the interpreter for that."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    return_large_blocks()
    broker = open_broker(settings)
    gc.freeze()  # existing objects stay: the collector need not visit them
    gc.set_threshold(*_GC_THRESHOLDS)
    return broker


@contextmanager
def scaling(broker: Broker) -> Iterator[None]:
    """Run the autoscaler if the settings name a file of fleets."""
    if not broker.settings.scaling.fleets_file:
        yield
        return
    from penstock.wiring.autoscaling import Autoscaling

    scaling = Autoscaling(broker)
    scaling.start()
    try:
        yield
    finally:
        scaling.stop()


async def _serve_until_stopped(broker: Broker, on_ready: Callable[[str], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)

    def report(url: str) -> None:
        on_ready(ready_text(url, broker.settings, store=broker.store.backend))

    await run(broker, stop, on_ready=report)


async def run(broker: Broker, stop: asyncio.Event, *, on_ready: Callable[[str], None]) -> None:
    """Serve until `stop` is set; calls `on_ready` with the URL once connections are accepted."""
    settings = broker.settings.server
    waiting = waiting_claims(broker)
    app = app_of(broker, routes(broker, waiting))
    server = http_server(broker, app)
    port = await server.start(settings.host, settings.port, tls=tls_of(settings))
    broker.start_duties()
    broker.start_pushing()
    broker.start_archiving()
    workers = EmbeddedWorkers(broker.settings, broker.health)
    workers.start()
    on_ready(url_of(settings, port))
    await stop.wait()

    # Accept nothing new, end waiting claims and waits for results, finish running requests.
    app.is_closing = True
    waiting.close()
    broker.waiting_results.close()
    workers.drain()
    broker.store.limit_waits(min(CLOSING_WAIT_MS, settings.drain_ms))  # the store may hang
    await server.stop(drain_ms=settings.drain_ms)
    broker.sql.close()  # the loop waits for threads before it closes
    await workers.ended()


def waiting_claims(broker: Broker, *, share_of_limits: int = 1) -> WaitingClaims:
    """`share_of_limits`: how many processes share the limits of the node."""
    waiting = WaitingClaims(
        broker.messages,
        broker.clock,
        most=-(-broker.settings.limits.max_waiting_claims // share_of_limits),
        poll_ms=broker.settings.wakeups.poll_ms,
    )
    broker.listen(waiting.on_wakeup)
    broker.store.invite_claims(waiting.invite)
    return waiting


def app_of(broker: Broker, found: list[HttpRoute], *, forward: Handler | None = None) -> App:
    hosts = frozenset({broker.settings.server.host.encode()})
    return App(Router(found), broker.keyring, broker.logins, hosts=hosts, forward=forward)


def http_server(broker: Broker, app: App, *, share_of_limits: int = 1) -> HttpServer:
    settings = broker.settings.server
    traffic = Traffic(
        app,
        refuse=app.refuse,
        max_body_bytes=broker.settings.limits.max_batch_bytes + _ENVELOPE_BYTES,
        receive_timeout=settings.receive_timeout_ms / 1000,
        idle_timeout=settings.idle_timeout_ms / 1000,
        max_connections=-(-settings.max_connections // share_of_limits),
    )
    traffic.order_of = app.order_of
    traffic.accepts_encoded = partial(accepts_encoded, broker)
    return HttpServer(traffic, broker.wall, broker.health)


def tls_of(server: ServerSettings) -> ssl.SSLContext | None:
    if server.tls_cert is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(server.tls_cert, server.tls_key)
    return context
