"""A front of a node: serves HTTP on the node's port, beside the other fronts.

It parses, authenticates, checks and encodes.  Hot verbs go to the writer (SQLite) or to the
database (PostgreSQL); other requests are forwarded to the writer as they are.
"""

from __future__ import annotations

import asyncio
import socket

import uvloop

from penstock.edge.node.child import Child
from penstock.edge.node.control import Connect, ControlChannel, NodeAssignment
from penstock.edge.node.forwarding import Forwarder
from penstock.edge.routes import front_routes
from penstock.edge.serving.serve import (
    app_of,
    http_server,
    open_served_broker,
    tls_of,
    waiting_claims,
)
from penstock.ports.link import FrontState, WriterLink
from penstock.runtime.forwarded_claims import ForwardedClaims
from penstock.runtime.waiting_claims import ClaimWaiter, WaitingClaims
from penstock.supervision.health import NodeHealth, NodePart
from penstock.supervision.threads import start_supervised
from penstock.wiring.broker import CLOSING_WAIT_MS, Broker
from penstock.wiring.fronts import link_to_writer

REPORT_S = 0.5


def run_front(assignment: NodeAssignment, channel: ControlChannel) -> None:
    broker = open_served_broker(assignment.settings)
    try:
        uvloop.run(_serve(broker, assignment, channel))
    finally:
        broker.close()


async def _serve(broker: Broker, assignment: NodeAssignment, channel: ControlChannel) -> None:
    settings = broker.settings.server
    child, link = Child(channel), link_to_writer(broker)
    is_connected = asyncio.Event()

    async def connect(message: Connect, end: socket.socket) -> None:
        await link.connect(end)
        reports.repeat()
        is_connected.set()

    claims = _claims(broker, link, fronts=assignment.fronts)
    reports = StateReports(link, broker.health, claims)
    child.listen(on_connect=connect)
    await is_connected.wait()
    forward = Forwarder(link).handle
    app = app_of(broker, front_routes(broker, claims, forward), forward=forward)
    server = http_server(broker, app, share_of_limits=assignment.fronts)
    await server.start(settings.host, assignment.port, tls=tls_of(settings), shares_port=True)
    broker.start_refreshing()
    reporter = start_supervised("reports", reports.run, health=broker.health)
    child.report_ready()
    await child.draining.wait()

    # Accept nothing new, end waiting claims without messages, finish running requests.
    app.is_closing = True
    claims.close()
    broker.store.limit_waits(min(CLOSING_WAIT_MS, settings.drain_ms))
    await server.stop(drain_ms=settings.drain_ms)
    reporter.cancel()
    link.close()


def _claims(broker: Broker, link: WriterLink, *, fronts: int) -> ClaimWaiter:
    """On SQLite claims wait in the writer; on PostgreSQL here, with wake-ups of the database."""
    if broker.settings.sqlite_path is None:
        return waiting_claims(broker, share_of_limits=fronts)
    patience_ms = broker.settings.store.request_timeout_ms
    return ForwardedClaims(broker.messages, link, patience_ms=patience_ms)


class StateReports:
    """Reports to the writer what the figures of the node need from this front."""

    def __init__(self, link: WriterLink, health: NodeHealth, claims: ClaimWaiter) -> None:
        self._link = link
        self._health = health
        self._claims = claims
        self._reported = FrontState()

    def repeat(self) -> None:
        """Report again: the writer is a new one."""
        self._reported = FrontState()
        self._report()

    async def run(self, part: NodePart) -> None:
        while True:
            await asyncio.sleep(REPORT_S)
            self._report()
            part.moves += 1

    def _report(self) -> None:
        waiting = self._claims.by_queue() if isinstance(self._claims, WaitingClaims) else {}
        state = FrontState(tuple(self._health.troubles()), waiting)
        if state != self._reported and self._link.is_connected:
            self._link.report(state)
            self._reported = state
