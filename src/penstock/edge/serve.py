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

from penstock.edge.aweq.api import AweqApi
from penstock.edge.console.api import ConsoleApi
from penstock.edge.embedded_workers import EmbeddedWorkers
from penstock.edge.native.bind import routes_of
from penstock.edge.native.docs.api import DocsApi
from penstock.edge.native.operations.acts import ActApi
from penstock.edge.native.operations.claims import ClaimApi
from penstock.edge.native.operations.health import HealthApi
from penstock.edge.native.operations.live import LiveApi
from penstock.edge.native.operations.metrics import MetricsApi
from penstock.edge.native.operations.sends import SendApi
from penstock.edge.push_routes import push_routes, takes_coded
from penstock.edge.server.allocator import return_large_blocks
from penstock.edge.server.app import App
from penstock.edge.server.listener import HttpServer
from penstock.edge.server.router import HttpRoute, Router
from penstock.edge.server.traffic import Traffic
from penstock.edge.sqs.api import SqsApi
from penstock.edge.worker_routes import work_routes
from penstock.runtime.waiting_claims import WaitingClaims
from penstock.settings import Settings
from penstock.wiring.broker import CLOSING_WAIT_MS, Broker, open_broker
from penstock.wiring.handlers import handlers_of

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
        broker.refuse_open_door()
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
    broker.listen(waiting.heard)
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
    traffic.takes_coded = partial(takes_coded, broker)
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


def routes(broker: Broker, waiting: WaitingClaims) -> list[HttpRoute]:
    """All routes of the server."""
    limits = broker.settings.limits
    scheme = "https" if broker.settings.server.tls_cert else "http"
    found = [
        *_aweq_routes(broker, waiting),
        *SendApi(broker.messages, limits).routes(),
        *ClaimApi(broker.messages, broker.directory, waiting, limits).routes(),
        *ActApi(broker.messages, broker.directory, limits).routes(),
        *routes_of(handlers_of(broker, waiting)),
        *work_routes(broker, waiting),
        *push_routes(broker),
        *MetricsApi(
            broker.history, waiting, broker.circuits, broker.pushed, broker.scaling, broker.watch
        ).routes(),
        *HealthApi(broker.history, broker.health).routes(),
        *LiveApi(
            broker.watch,
            most_listeners=limits.max_listeners,
            is_let_in=broker.keyring.is_let_in,
            health=broker.health,
        ).routes(),
    ]
    has_console = broker.settings.console.enabled
    docs = DocsApi(
        found,
        is_key_needed=lambda: broker.keyring.is_needed,
        scheme=scheme,
        home="/console" if has_console else "/docs",
    )
    found += docs.routes()
    if has_console:
        found += ConsoleApi(
            broker.keyring,
            broker.logins,
            is_tls=scheme == "https",
            has_aweq=broker.settings.aweq.enabled,
        ).routes()
    if broker.settings.sqs.enabled:
        found += SqsApi(broker, waiting, scheme=scheme, home=docs.home).routes()
    return found


def _aweq_routes(broker: Broker, waiting: WaitingClaims) -> list[HttpRoute]:
    settings = broker.settings
    if not settings.aweq.enabled:
        return []
    return AweqApi(
        broker.messages,
        broker.queues,
        waiting,
        settings=settings.aweq,
        reap_interval_ms=settings.queues.reap_interval_ms,
        limits=settings.limits,
    ).routes()


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
