"""A driver for RabbitMQ: publish, consume, and set it up as its users do."""

from __future__ import annotations

import base64
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self
from urllib.parse import quote

import msgspec
import pika

from tests.support.rabbitmq import HOST, PASSWORD, USER, RabbitNode

_STEP_S = 0.01


class RabbitDriver:
    def __init__(self, node: RabbitNode, *, vhost: str = "/") -> None:
        self._node = node
        self._params = pika.ConnectionParameters(
            HOST,
            node.port,
            virtual_host=vhost,
            credentials=pika.PlainCredentials(USER, PASSWORD),
        )
        self._connection: pika.BlockingConnection | None = None

    def __enter__(self) -> Self:
        self._connection = pika.BlockingConnection(self._params)
        self._channel = self._connection.channel()
        self._channel.confirm_delivery()
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._connection is not None
        self._connection.close()

    def declare(self, *queues: str) -> None:
        for queue in queues:
            self._channel.queue_declare(queue, durable=True)

    def publish(self, queue: str, count: int = 1) -> None:
        """Publish; returns when the broker has confirmed the messages."""
        for _ in range(count):
            self._channel.basic_publish("", queue, b"work")

    def take(self, queue: str, count: int = 1) -> list[int]:
        """Consume messages without acknowledging them until the connection is closed."""
        return [self._channel.basic_get(queue)[0].delivery_tag for _ in range(count)]

    @contextmanager
    def traffic(self, queue: str) -> Iterator[None]:
        """Publish and consume continuously."""
        is_over = threading.Event()

        def flow() -> None:
            connection = pika.BlockingConnection(self._params)
            channel = connection.channel()
            while not is_over.wait(_STEP_S):
                channel.basic_publish("", queue, b"work")
                channel.basic_get(queue, auto_ack=True)
            connection.close()

        thread = threading.Thread(target=flow, name="traffic")
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


def manage(node: RabbitNode, path: str, **body: object) -> None:
    """Send a PUT to the management API."""
    token = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    request = urllib.request.Request(
        f"{node.management_url}/api/{path}",
        data=msgspec.json.encode(body),
        headers={"Authorization": f"Basic {token}", "Content-Type": "application/json"},
        method="PUT",
    )
    urllib.request.urlopen(request, timeout=30).close()


def add_vhost(node: RabbitNode, name: str) -> None:
    manage(node, f"vhosts/{quote(name, safe='')}")
    manage(
        node,
        f"permissions/{quote(name, safe='')}/{USER}",
        configure=".*",
        write=".*",
        read=".*",
    )


def add_user(node: RabbitNode, name: str, password: str) -> None:
    manage(node, f"users/{name}", password=password, tags="monitoring")
    manage(node, f"permissions/%2F/{name}", configure="", write="", read=".*")
