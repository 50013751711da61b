"""How many files a request passes through: a reader of the code follows them in this order."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import pytest

import penstock
from tests.edge.api import Api
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer

PACKAGE = f"{Path(penstock.__file__).parent}/"
REPEATS = 4
MOST = (30, 30, 34)
SEND = {"X-Amz-Target": "AmazonSQS.SendMessage", "Content-Type": "application/x-amz-json-1.0"}

Files = set[str]
Count = Callable[[Callable[[], Any]], Files]


@pytest.fixture
def files() -> Iterator[Files]:
    """The files whose functions are called, in threads that start from now on."""
    found: Files = set()

    def profile(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(PACKAGE):
            found.add(name.removeprefix(PACKAGE))

    before = sys.getprofile()
    threading.setprofile(profile)
    yield found
    threading.setprofile(before)


@pytest.fixture
def server(files: Files, tmp_path: Path) -> Iterator[LiveServer]:
    with LiveServer(some_settings(tmp_path), has_duties=False) as started:
        yield started


@pytest.fixture
def walk(files: Files) -> Count:
    def walk(do: Callable[[], Any]) -> Files:
        """The files of every repetition: other threads work now and then, and caches fill."""
        do()
        walks = []
        for _ in range(REPEATS):
            files.clear()
            do()
            walks.append(set(files))
        return set.intersection(*walks)

    return walk


def test_a_send_a_claim_and_a_send_of_sqs_pass_through_few_files(
    server: LiveServer, walk: Count
) -> None:
    api = Api(server.url)
    queue = api.make_queue()
    sqs = {"QueueUrl": f"{server.url}/000000000000/{queue}", "MessageBody": "x"}

    with httpx.Client(headers=SEND) as client:
        walks = [
            walk(lambda: api.send(queue, "x")),
            walk(lambda: api.claim_one(queue)),
            walk(lambda: client.post(server.url, json=sqs).raise_for_status()),
        ]

    for files, most in zip(walks, MOST, strict=True):
        assert len(files) <= most, sorted(files)
