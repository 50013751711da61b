"""All routes of the server: the native API, the other protocols, the console."""

from __future__ import annotations

from functools import partial

from penstock.domain.queue.queue import QueueSettings
from penstock.edge.aweq.api import AweqApi
from penstock.edge.console.api import ConsoleApi
from penstock.edge.gateleen.api import PushApi
from penstock.edge.gateleen.circuits import CircuitApi
from penstock.edge.gateleen.resources import ResourceApi
from penstock.edge.izenda.api import TaskApi
from penstock.edge.native.bind import routes_of
from penstock.edge.native.docs.api import DocsApi
from penstock.edge.native.operations.leases import ActApi, ClaimApi
from penstock.edge.native.operations.live import LiveApi
from penstock.edge.native.operations.overview import HealthApi, MetricsApi
from penstock.edge.native.operations.sends import SendApi
from penstock.edge.server.request import Handler
from penstock.edge.server.router import HttpRoute
from penstock.edge.sns.api import SnsApi
from penstock.edge.sqs.api import SqsApi
from penstock.operations.change_log import logged
from penstock.runtime.waiting_claims import ClaimWaiter
from penstock.services.queues import ProtocolQueue
from penstock.wiring.broker import Broker
from penstock.wiring.handlers import handlers_of


def routes(broker: Broker, claims: ClaimWaiter) -> list[HttpRoute]:
    """All routes of the server."""
    limits = broker.settings.limits
    scheme = _scheme(broker)
    found = [
        *_hot_routes(broker, claims),
        *routes_of(logged(handlers_of(broker, claims), broker.store, broker.clock)),
        *_task_routes(broker, claims),
        *_push_routes(broker),
        *MetricsApi(
            broker.history, claims, broker.circuits, broker.pushed, broker.scaling, broker.overview
        ).routes(),
        *HealthApi(broker.history, broker.health).routes(),
        *LiveApi(
            broker.overview,
            most_listeners=limits.max_listeners,
            is_still_valid=broker.keyring.is_still_valid,
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
            is_aweq_used=partial(_has_queue, broker, broker.settings.aweq.queue),
        ).routes()
    sns = _sns(broker)
    if sns is not None:
        found += sns.routes()
    return found + _sqs_routes(broker, claims, docs.home, None if sns is None else sns.handle)


async def _has_queue(broker: Broker, name: str) -> bool:
    return await broker.queues.exists(name)


def front_routes(broker: Broker, claims: ClaimWaiter, forward: Handler) -> list[HttpRoute]:
    """The routes that a front serves itself; `forward` serves the others in the writer."""
    sns = forward if broker.settings.sqs.sns else None
    return _hot_routes(broker, claims) + _sqs_routes(broker, claims, forward, sns)


def _hot_routes(broker: Broker, claims: ClaimWaiter) -> list[HttpRoute]:
    limits = broker.settings.limits
    return [
        *_aweq_routes(broker, claims),
        *SendApi(broker.messages, limits).routes(),
        *ClaimApi(broker.messages, broker.directory, claims, limits).routes(),
        *ActApi(broker.messages, broker.directory, limits).routes(),
    ]


def _sns(broker: Broker) -> SnsApi | None:
    settings = broker.settings
    if not settings.sqs.enabled or not settings.sqs.sns:
        return None
    return SnsApi(broker, scheme=_scheme(broker))


def _sqs_routes(
    broker: Broker, claims: ClaimWaiter, home: Handler, sns: Handler | None
) -> list[HttpRoute]:
    """`home`: what a browser gets at `/`; `sns`: what answers requests of SNS's clients there."""
    if not broker.settings.sqs.enabled:
        return []
    return SqsApi(broker, claims, scheme=_scheme(broker), home=home, sns=sns).routes()


def _scheme(broker: Broker) -> str:
    return "https" if broker.settings.server.tls_cert else "http"


def _aweq_routes(broker: Broker, claims: ClaimWaiter) -> list[HttpRoute]:
    settings = broker.settings
    if not settings.aweq.enabled:
        return []
    return AweqApi(
        broker.messages,
        broker.queues,
        claims,
        settings=settings.aweq,
        reap_interval_ms=settings.queues.reap_interval_ms,
        limits=settings.limits,
    ).routes()


def _push_routes(broker: Broker) -> list[HttpRoute]:
    settings, circuits = broker.settings.push, broker.circuits
    if not settings.enabled:
        return []
    paths = settings.paths
    return [
        *PushApi(broker.deliveries, broker.clock, path=paths["path"]).routes(),
        *ResourceApi(broker.routes, circuits, broker.documents, settings).routes(),
        *CircuitApi(circuits, path=paths["circuits_path"]).routes(),
    ]


def accepts_encoded(broker: Broker, target: bytes) -> bool:
    """Whether a compressed body is accepted: only where it is forwarded unchanged."""
    settings = broker.settings.push
    return settings.enabled and target.startswith(settings.paths["path"].encode() + b"/")


def _task_routes(broker: Broker, claims: ClaimWaiter) -> list[HttpRoute]:
    workers, tasks = broker.settings.workers, broker.settings.tasks
    grace_ms, limits = workers.grace_ms, broker.settings.limits
    queue = ProtocolQueue(
        broker.queues,
        broker.messages,
        name=tasks.queue,
        # A task whose worker crashes is retried in its old place; a failure is final.
        settings=QueueSettings(lease_ms=workers.valid_ms + grace_ms, max_attempts=None),
    )
    task_api = TaskApi(
        broker.messages,
        broker.workers,
        claims,
        queue,
        broker.task_leases,
        broker.clock,
        limits,
        timeout_ms=tasks.timeout_ms,
    )
    return task_api.routes()
