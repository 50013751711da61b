"""The handlers that answer the operations of the contract, over HTTP and within one process."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.operations.administration import AdministrationOperations
from penstock.operations.call import Handlers
from penstock.operations.circuits import CircuitOperations, CircuitSettingsOperations
from penstock.operations.deliveries import DeliveryOperations, RouteOperations
from penstock.operations.errors import ErrorOperations
from penstock.operations.flows import FlowOperations
from penstock.operations.history import FactOperations, HistoryOperations
from penstock.operations.job_circuits import JobCircuitOperations
from penstock.operations.jobs.attempt_logs import AttemptLogOperations
from penstock.operations.jobs.results import ResultOperations
from penstock.operations.jobs.steps import SignalOperations, StepOperations
from penstock.operations.lake import AnswerOperations, SqlOperations, TableOperations
from penstock.operations.messages import BulkOperations, MessageOperations
from penstock.operations.notifications import NotificationOperations
from penstock.operations.overview import OverviewOperations, WaitingCounts
from penstock.operations.queues import MoveOperations, QueueOperations
from penstock.operations.recurring import RecurringOperations
from penstock.operations.scaling import ScalingOperations
from penstock.operations.topics import TopicOperations
from penstock.operations.workers import WorkerOperations
from penstock.version import __version__
from penstock.wiring.broker import Broker


class NoWaitingClaims:
    """For a process that serves no claims, so that none can wait."""

    waiting = 0

    def waiting_for(self, queue_nos: Iterable[int]) -> int:
        return 0


def handlers_of(broker: Broker, waiting: WaitingCounts | None = None) -> Handlers:
    b, circuits, settings = broker, broker.circuits, broker.settings
    waiting = NoWaitingClaims() if waiting is None else waiting
    groups = (
        QueueOperations(b.queues, b.history, b.overview),
        MessageOperations(b.messages, b.selection),
        StepOperations(b.steps, b.messages, b.directory),
        SignalOperations(b.steps),
        BulkOperations(b.messages, b.selection),
        ErrorOperations(b.errors, b.selection),
        AttemptLogOperations(b.attempt_logs, b.messages, b.directory, settings.limits),
        ResultOperations(b.results, b.waiting_results, settings.limits),
        MoveOperations(b.moves),
        FlowOperations(b.flows, b.flow_members, b.waiting_results, settings.limits),
        NotificationOperations(b.notifications, b.messages),
        TopicOperations(
            b.topics, b.bus, b.queues, settings.limits, auto_create=settings.queues.auto_create
        ),
        WorkerOperations(b.workers, b.task_leases, beat_ms=settings.workers.beat_ms),
        FactOperations(b.facts),
        RecurringOperations(b.recurring),
        DeliveryOperations(b.deliveries, b.clock),
        RouteOperations(b.routes),
        CircuitOperations(circuits, b.circuit_details),
        CircuitSettingsOperations(circuits.breaker, circuits.own_settings),
        JobCircuitOperations(circuits, b.routes, b.job_routes, settings.limits),
        ScalingOperations(b.scaling, b.facts, b.clock),
        TableOperations(b.tables),
        AnswerOperations(b.answers),
        SqlOperations(b.sql),
        AdministrationOperations(b.keys, settings),
        HistoryOperations(b.history),
        OverviewOperations(b.history, b.overview, b.graphs, b.routes, waiting, version=__version__),
    )
    return {operation: run for group in groups for operation, run in group.handlers().items()}
