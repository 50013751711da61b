"""What answers the operations of the contract in one process."""

from __future__ import annotations

from penstock.operations.bulk import BulkOperations
from penstock.operations.call import Handlers
from penstock.operations.messages import MessageOperations
from penstock.operations.moves import MoveOperations
from penstock.operations.notifications import NotificationOperations
from penstock.operations.queues import QueueOperations
from penstock.operations.recurring import RecurringOperations
from penstock.operations.topics import TopicOperations
from penstock.wiring.broker import Broker


def handlers_of(broker: Broker) -> Handlers:
    return {
        **MoveOperations(broker.moves).handlers(),
        **BulkOperations(broker.messages, broker.picking).handlers(),
        **MessageOperations(broker.messages, broker.picking).handlers(),
        **QueueOperations(broker.queues).handlers(),
        **NotificationOperations(broker.notifications, broker.messages).handlers(),
        **RecurringOperations(broker.recurring).handlers(),
        **topic_operations(broker).handlers(),
    }


def topic_operations(broker: Broker) -> TopicOperations:
    settings = broker.settings
    return TopicOperations(
        broker.bus, broker.queues, settings.limits, auto_create=settings.queues.auto_create
    )
