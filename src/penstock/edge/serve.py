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

from penstock.edge.embedded_workers import EmbeddedWorkers
from penstock.edge.routes import accepts_encoded, routes
from penstock.edge.server.allocator import return_large_blocks
from penstock.edge.server.app import App
from penstock.edge.server.listener import HttpServer
from penstock.edge.server.router import Router
from penstock.edge.server.traffic import Traffic
from penstock.runtime.waiting_claims import WaitingClaims
from penstock.settings import Settings
from penstock.wiring.broker import CLOSING_WAIT_MS, Broker, open_broker

# Framing and the fields around the bodies of a batch.
_ENVELOPE_BYTES = 64 * 1024

# Requests leave no reference cycles, so the collector need not run every 700 objects; that took
# 3 to 6 % of the time under load.
_GC_THRESHOLDS = (50_000, 20, 50)

# The writer thread must not wait 5 ms for the event loop to release the interpreter.
_SWITCH_SECONDS = 0.0005


def serve(settings: Settings, *, on_ready: Callable[[str], None] | None = None) -> int:
    """Run until SIGINT or SIGTERM; returns the exit code."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    return_large_blocks()
    broker = open_broker(settings)
    gc.freeze()  # existing objects stay: the collector need not visit them
    gc.set_threshold(*_GC_THRESHOLDS)
    try:
        broker.refuse_public_without_keys()
        with _scaling(broker):
            uvloop.run(_serve_until_stopped(broker, on_ready or _print))
    finally:
        broker.close()
    return 0


@contextmanager
def _scaling(broker: Broker) -> Iterator[None]:
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
        store = broker.store.backend
        pages = f"docs {url}/docs"
        if broker.settings.console.enabled:
            pages = f"console {url}/console, {pages}"
        on_ready(f"penstock is ready: API {url}/v1, {pages}, store {store}")

    await run(broker, stop, on_ready=report)


async def run(broker: Broker, stop: asyncio.Event, *, on_ready: Callable[[str], None]) -> None:
    """Serve until `stop` is set; calls `on_ready` with the URL once connections are accepted."""
    settings = broker.settings.server
    waiting = WaitingClaims(
        broker.messages,
        broker.clock,
        most=broker.settings.limits.max_waiting_claims,
        poll_ms=broker.settings.waking.poll_ms,
    )
    broker.listen(waiting.on_wakeup)
    hosts = _hosts(settings.host)
    app = App(Router(routes(broker, waiting)), broker.keyring, broker.logins, hosts=hosts)
    traffic = Traffic(
        app,
        refuse=app.refuse,
        max_body_bytes=broker.settings.limits.max_batch_bytes + _ENVELOPE_BYTES,
        receive_timeout=settings.receive_timeout_ms / 1000,
        idle_timeout=settings.idle_timeout_ms / 1000,
        max_connections=settings.max_connections,
    )
    traffic.accepts_encoded = partial(accepts_encoded, broker)
    server = HttpServer(traffic, broker.wall, broker.health)
    tls = _tls(settings.tls_cert, settings.tls_key)
    port = await server.start(settings.host, settings.port, tls=tls)
    broker.start_duties()
    broker.start_pushing()
    broker.start_archiving()
    scheme = "https" if tls else "http"
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    workers = EmbeddedWorkers(broker.settings, broker.health)
    workers.start()
    on_ready(f"{scheme}://{host}:{port}")
    await stop.wait()

    # Accept nothing new, end waiting claims without messages, finish running requests.
    app.is_closing = True
    waiting.close()
    workers.drain()
    broker.store.limit_waits(min(CLOSING_WAIT_MS, settings.drain_ms))  # the store may hang
    await server.stop(drain_ms=settings.drain_ms)
    await workers.ended()


def _print(line: str) -> None:
    # Flush, also into a pipe: supervisors wait for this line.
    print(line, flush=True)  # noqa: T201


def _hosts(host: str) -> frozenset[bytes]:
    return frozenset({host.encode()})


def _tls(cert: str | None, key: str | None) -> ssl.SSLContext | None:
    if cert is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(cert, key)
    return context
