"""The tutorial works, step by step, with a server, workers and a warehouse."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL

import pytest

from penstock.client.remote.server import Remote
from penstock.domain.message.lifecycle import State
from tests.docs.snippets import ROOT, make_environment, run_script
from tests.docs.snippets import read_blocks as blocks_of
from tests.edge.conftest import MakeProcess
from tests.edge.process import ServerProcess
from tests.support.http_backend import HttpBackend
from tests.support.private_servers import free_port
from tests.support.programs import need
from tests.support.waiting import eventually

PAGE = "docs/tutorial.md"
FILES = ("definitions.yaml", "jobs.py", "shop.py")
WAREHOUSE = "warehouse.py"
FIXED = 'if "@" not in to:\n        return ""'
BROKEN = re.compile(r'if "@" not in to:\n +raise .*')


@pytest.fixture
def warehouse() -> Iterator[HttpBackend]:
    with HttpBackend() as backend:
        backend.answer(503)
        yield backend


@pytest.fixture
def shop(tmp_path: Path, warehouse: HttpBackend) -> Iterator[tuple[ServerProcess, Path]]:
    """A server with the definitions of the page, and the folder with its programs."""
    definitions = tmp_path / "definitions.yaml"
    own = blocks_of(PAGE, "definitions.yaml").replace("127.0.0.1:9000", warehouse.url[7:])
    definitions.write_text(own)
    settings = {"server_definitions": definitions}
    with ServerProcess(tmp_path / "data", settings) as server:
        for name in FILES[1:]:
            text = blocks_of(PAGE, name).replace("127.0.0.1:7654", f"127.0.0.1:{server.port}")
            (tmp_path / name).write_text(text)
        yield server, tmp_path


def work(server: ServerProcess, folder: Path) -> str:
    """Run a worker until nothing is due."""
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "worker", "jobs:app", "--burst"],
        cwd=folder,
        env=make_environment(server),
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def make_due(broker: Remote, queue: str) -> None:
    """Skip the pauses between attempts."""
    for message in broker.messages.browse(queue, state=State.WAITING).messages:
        broker.messages.reschedule(message.id, delay_ms=0)


def has_delivered(broker: Remote) -> bool:
    make_due(broker, "warehouse")
    return bool(broker.queues.get("warehouse").totals.done)


def test_the_shop_of_the_page_sells(
    shop: tuple[ServerProcess, Path], warehouse: HttpBackend
) -> None:
    need("curl")
    server, folder = shop
    port = free_port()
    flask = [sys.executable, "-m", "flask", "--app", "shop:web", "run", "--port", str(port)]

    def step(mark: str) -> str:
        script = blocks_of(PAGE, mark).replace("127.0.0.1:5000", f"127.0.0.1:{port}")
        return run_script(server, script, folder=folder)

    environment = make_environment(server)
    with (
        Remote(server.url) as broker,
        (folder / "flask.log").open("wb") as log,
        subprocess.Popen(flask, cwd=folder, env=environment, stderr=log, stdout=log) as web,
    ):
        try:
            eventually(lambda: b"Running on" in (folder / "flask.log").read_bytes())
            assert '"order":1' in step("order")
            assert "receipt of order 1 to ada@example.org" in work(server, folder)
            eventually(lambda: warehouse.seen)
            assert "warehouse" in step("look")
            warehouse.answer(200)
            eventually(lambda: has_delivered(broker))
            step("mistake")
        finally:
            web.terminate()

        for _ in range(3):  # attempts
            work(server, folder)
            make_due(broker, "mail")
        assert "ValueError" in step("dead")

        jobs = folder / "jobs.py"
        jobs.write_text(BROKEN.sub(FIXED, jobs.read_text()))
        step("redrive")
        assert "receipt" not in work(server, folder)
        endings = broker.history.search(queue="mail", outcome=State.DONE)
        assert len(list(endings)) == 2

        assert "nightly_report" in step("schedule")
        assert "all orders of the day" in work(server, folder)
    assert warehouse.seen[0].payload == b'{"item": "book"}'


def test_the_warehouse_of_the_page_accepts_a_delivery(
    tmp_path: Path, make_process: MakeProcess
) -> None:
    port = free_port()
    definitions = tmp_path / "definitions.yaml"
    own = blocks_of(PAGE, "definitions.yaml").replace("127.0.0.1:9000", f"127.0.0.1:{port}")
    definitions.write_text(own)
    server = make_process(server_definitions=definitions)
    program = blocks_of(PAGE, WAREHOUSE).replace("9000", str(port))
    log = tmp_path / "warehouse.log"

    with (
        Remote(server.url) as broker,
        log.open("wb") as output,
        subprocess.Popen(
            [sys.executable, "-u", "-c", program], stdout=output, stderr=DEVNULL
        ) as warehouse,
    ):
        try:
            eventually(lambda: is_open(port))
            push(server, "/push/warehouse/orders/1", b'{"item": "book"}')
            eventually(lambda: has_delivered(broker))
        finally:
            warehouse.terminate()

    assert log.read_text() == '/orders/1 b\'{"item": "book"}\'\n'


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True


def push(server: ServerProcess, path: str, body: bytes) -> None:
    headers = {"x-queue": "warehouse", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{server.url}{path}", body, headers, method="PUT")
    urllib.request.urlopen(request).close()


def test_every_block_of_the_page_is_run() -> None:
    marks = re.findall(r"<!-- (\S+) -->", (ROOT / PAGE).read_text(encoding="utf-8"))

    steps = ["order", "look", WAREHOUSE, "mistake", "dead", "redrive", "schedule"]
    assert marks == [*FILES, *steps]
