"""One server whose clock runs, and one worker that most tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from celery import Celery
from celery.result import AsyncResult

from penstock.wiring.broker import migrate
from tests.edge.api import a_name
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer
from tests.edge.sqs.celery import application
from tests.edge.sqs.celery.worker import Worker
from tests.support.waiting import eventually

PATIENCE_S = 60.0
REGION = "us-east-1"
OPTIONS = {
    "is_secure": False,
    "region": REGION,
    "visibility_timeout": 60,
    "wait_time_seconds": 1,
    "polling_interval": 0.05,
}
DEAD_LETTERS = "burnt"
QUEUES = ("shop", "orders.fifo", "oven")


class Shop:
    """Celery's own client, the folder of the marks, and SQS as an operator uses it."""

    def __init__(
        self,
        server: LiveServer,
        folder: Path,
        *,
        key: tuple[str, str] = ("key", "secret"),
        **options: Any,
    ) -> None:
        self.server = server
        self.folder = folder
        self.options = OPTIONS | options
        self.broker = f"sqs://{key[0]}:{key[1]}@127.0.0.1:{server.port}"
        self.app: Celery = application.make_app(self.broker, folder, self.options)
        self.sqs = boto3.client(
            "sqs",
            endpoint_url=server.url,
            region_name=REGION,
            aws_access_key_id=key[0],
            aws_secret_access_key=key[1],
        )

    def worker(self, *queues: str) -> Worker:
        return Worker(self.broker, self.folder, self.options, queues)

    def run(self, task: str, *args: Any, queue: str = "shop", **options: Any) -> AsyncResult:
        return self.app.tasks[task].apply_async(args, queue=queue, **options)

    def journal(self) -> str:
        return a_name("journal")

    def marks(self, journal: str) -> list[str]:
        return application.marks(self.folder, journal)

    def wait_for_marks(self, journal: str, count: int) -> list[str]:
        eventually(lambda: len(self.marks(journal)) >= count, within_s=PATIENCE_S)
        return self.marks(journal)

    def counts(self, queue: str) -> tuple[int, int, int]:
        """Visible, in flight, delayed."""
        found = self.sqs.get_queue_attributes(
            QueueUrl=self.sqs.get_queue_url(QueueName=queue)["QueueUrl"], AttributeNames=["All"]
        )["Attributes"]
        names = ("", "NotVisible", "Delayed")
        seen, held, delayed = (int(found[f"ApproximateNumberOfMessages{name}"]) for name in names)
        return seen, held, delayed

    def wait_until_empty(self, queue: str) -> None:
        eventually(lambda: self.counts(queue) == (0, 0, 0), within_s=PATIENCE_S)


OpenShop = Callable[..., Shop]


def result_of(result: AsyncResult) -> Any:
    return result.get(timeout=PATIENCE_S, interval=0.02)


@pytest.fixture(scope="package")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server whose clock runs: Celery's clock cannot be set."""
    with _server(tmp_path_factory) as started:
        yield started


@pytest.fixture(scope="package")
def with_worker(
    running: LiveServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Shop, Worker]]:
    opened = Shop(running, _folder(tmp_path_factory))
    _make_oven(opened)
    with opened.worker(*QUEUES) as worker:
        result_of(opened.run("add", 1, 1))  # it is ready once it has run a task
        yield opened, worker


@pytest.fixture
def the_shop(with_worker: tuple[Shop, Worker], request: pytest.FixtureRequest) -> Iterator[Shop]:
    opened, worker = with_worker
    failed_before = request.session.testsfailed
    yield opened
    if request.session.testsfailed > failed_before:
        print(worker.log_tail())


@pytest.fixture
def open_shop(running: LiveServer, tmp_path_factory: pytest.TempPathFactory) -> OpenShop:
    """A client with its own options and no worker yet: open_shop(visibility_timeout=2)."""

    def make(**options: Any) -> Shop:
        return Shop(running, _folder(tmp_path_factory), **options)

    return make


@pytest.fixture(scope="package")
def server_with_keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that requires a key."""
    with _server(tmp_path_factory, auth={"required": "always"}) as started:
        yield started


def _server(folders: pytest.TempPathFactory, **settings: Any) -> LiveServer:
    chosen = some_settings(folders.mktemp("celery"), **settings)
    migrate(chosen)
    return LiveServer(chosen)


def _folder(folders: pytest.TempPathFactory) -> Path:
    folder = folders.mktemp("shop")
    (folder / "results").mkdir()
    return folder


def _make_oven(opened: Shop) -> None:
    """A queue with a dead-letter queue; tasks that Celery rejects end there."""
    opened.sqs.create_queue(QueueName=DEAD_LETTERS)
    arn = f"arn:aws:sqs:{REGION}:000000000000:{DEAD_LETTERS}"
    policy = f'{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": 2}}'
    opened.sqs.create_queue(
        QueueName="oven", Attributes={"VisibilityTimeout": "1", "RedrivePolicy": policy}
    )
