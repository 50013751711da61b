"""Where a story is played: a store, a server beside it if needed, and programs as processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from tests.edge.api import Api, ok
from tests.edge.process import ServerProcess
from tests.support.private_servers import free_port
from tests.support.waiting import eventually

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120.0  # the machine may be busy; a story on a quiet one takes seconds
# A killed worker's jobs are free again after its lease, so a short one keeps a story short.
WORKER = ("--slots", "4", "--lease", "3s", "--beat", "500ms")


class Program:
    """A process with its children; `kill` ends all of them as if the machine had died."""

    def __init__(self, command: list[str], log: Path, env: dict[str, str]) -> None:
        self.log = log
        with log.open("ab") as file:
            self._begin = file.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-m", *command],
                cwd=ROOT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def has_logged(self, text: str) -> bool:
        return text.encode() in self.log.read_bytes()[self._begin :]

    def kill(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE_S)

    def end(self) -> int:
        """Ask it to end in order, once it can do so; returns its exit code."""
        eventually(self._handles_sigterm, within_s=PATIENCE_S)
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self) -> int:
        """Until it ends by itself."""
        return self._process.wait(PATIENCE_S)

    def _handles_sigterm(self) -> bool:
        """A program whose work is already done may be ended while Python still starts."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
        return bool(int(caught.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


class StoryEnvironment:
    """`url` is what an application opens: the store itself, or the server before it."""

    def __init__(self, folder: Path, store: str, *, is_remote: bool) -> None:
        self.folder = folder
        self.store = store
        self._is_remote = is_remote
        self._server: ServerProcess | None = None
        self._api: Api | None = None
        self._programs: list[Program] = []
        self._stack = ExitStack()
        self.env: dict[str, str] = {}

    @property
    def url(self) -> str:
        return self.server.url if self._is_remote else self.store

    @property
    def server(self) -> ServerProcess:
        assert self._server is not None, "this story has no server"
        return self._server

    @property
    def api(self) -> Api:
        """The server as an operator sees it."""
        assert self._api is not None
        return self._api

    def serve(self, **settings: object) -> ServerProcess:
        """On a port that stays the same when it is killed and started again."""
        settings = {"server_port": free_port(), **settings}
        self._server = ServerProcess(self.folder / "data", settings, store=self.store)
        self._stack.enter_context(self._server)
        self._api = self._stack.enter_context(closing(Api(self._server.url)))
        return self._server

    def kill_server(self) -> None:
        self.server.end(signal.SIGKILL)

    def run(self, module: str, *arguments: str) -> Program:
        """`python -m module`, with the names of places in its environment."""
        places = {"STORY_URL": self.url, "STORY_FOLDER": str(self.folder), **self.env}
        if self._server is not None:
            places["STORY_SERVER"] = self.server.url
        env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", **places}
        name = module.rpartition(".")[2]
        program = Program([module, *arguments], self.folder / f"{name}.log", env)
        self._programs.append(program)
        return program

    def work(self, app: str, *flags: str) -> Program:
        return self.run("penstock", "worker", app, *WORKER, *flags)

    def lines(self, name: str = "did") -> list[str]:
        """What the programs have written down."""
        file = self.folder / name
        return file.read_text().splitlines() if file.exists() else []

    def totals(self, queue: str) -> dict[str, int]:
        """What is in a queue and what has ended in it, without the zeros."""
        answer = self.api.call("GET", f"/v1/queues/{queue}")
        if answer.status_code == httpx.codes.NOT_FOUND:  # the first message makes it
            return {}
        found = ok(answer)
        counted = {**found["counts"], **found["totals"]}
        wanted = ("ready", "waiting", "leased", "dead", "done", "cancelled")
        return {name: counted[name] for name in wanted if counted.get(name)}

    def until(self, happened: Callable[[], Any]) -> Any:
        """Wait for it; a server that was killed just now may not answer yet."""

        def look() -> Any:
            try:
                return happened()
            except httpx.TransportError:
                return None

        return eventually(look, within_s=PATIENCE_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for program in self._programs:
            program.kill()
        self._stack.close()
        if error is not None:  # pytest shows it with the failure
            for log in sorted(self.folder.glob("*.log")):
                print(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}")
