"""The wire side of each peer, as the load generator uses it."""

from __future__ import annotations

import importlib

from bench.clients.base import Client, Endpoint

# Named, not imported: a generator process loads the one client that it needs.
CLIENTS = {
    "penstock": "bench.clients.penstock:PenstockClient",
    "streams": "bench.clients.streams:StreamsClient",
    "amqp": "bench.clients.amqp:AmqpClient",
    "beanstalk": "bench.clients.beanstalk:BeanstalkClient",
    "skip_locked": "bench.clients.skip_locked:SkipLockedClient",
    "sqs": "bench.clients.sqs:SqsClient",
    "litequeue": "bench.clients.libraries:LiteQueueClient",
    "persistqueue": "bench.clients.libraries:PersistQueueClient",
}


def client_of(name: str, endpoint: Endpoint, queue: str) -> Client:
    module, _, attribute = CLIENTS[name].partition(":")
    made: Client = getattr(importlib.import_module(module), attribute)(endpoint, queue)
    return made
