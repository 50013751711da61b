"""A private RabbitMQ node in a temporary folder, with its management server.

    with RabbitNode() as node:
        node.management_url, node.port

It has its own name, ports, epmd, cookie and folders, apart from a packaged node; it listens on
127.0.0.1 only and ends with its owner, however the owner ends (see server_guard.py).

    python -m tests.support.rabbitmq

is what `make test` runs first: it installs Debian's package where there is no RabbitMQ, as root.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.support import debian
from tests.support.private_servers import free_port, start_guard

HOST = "127.0.0.1"
USER = PASSWORD = "guest"
# The script itself: the packaged wrapper on the path requires the rabbitmq user.
SCRIPTS = ("/usr/lib/rabbitmq/bin",)
SERVER, EPMD = "rabbitmq-server", "epmd"
MISSING = """\
No RabbitMQ server to test with: install it (Debian: apt-get install rabbitmq-server).
`make test` installs Debian's package by itself where it runs as root."""

_STEP_S = 0.05
_START_STEPS = 2_400
_STOP_S = 20
# Statistics every second instead of every five; otherwise the node has its defaults.
_SETTINGS = """\
listeners.tcp.1 = {host}:{port}
management.tcp.ip = {host}
management.tcp.port = {management_port}
collect_statistics_interval = 500
management.sample_retention_policies.global.minute = 1
management.sample_retention_policies.basic.minute = 1
management.sample_retention_policies.detailed.10 = 1
"""


class RabbitFailedError(RuntimeError):
    """There is no RabbitMQ, or it did not start; the text ends with its output."""


def environment(folder: Path, *, port: int, epmd_port: int, dist_port: int) -> dict[str, str]:
    """The environment of a node that keeps everything in `folder` and reads no other settings."""
    return {
        "HOME": str(folder),
        "ERL_EPMD_PORT": str(epmd_port),
        "ERL_EPMD_ADDRESS": HOST,
        "RABBITMQ_NODENAME": f"node{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": HOST,
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(dist_port),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "no-environment"),
        "RABBITMQ_CONFIG_FILE": str(folder / "no-settings"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "no-plugins"),
    }


class RabbitNode:
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-rabbit-"))
        self.port, self.management_port = free_port(), free_port()
        self.management_url = f"http://{HOST}:{self.management_port}"
        self._env = self._environment()
        self._owner = os.getpid()
        self._epmd: subprocess.Popen[bytes] | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._guard = start_guard(self.folder)
        atexit.register(self.close)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_running(self) -> bool:
        return self._server is not None and self._server.poll() is None

    @property
    def log(self) -> str:
        path = self.folder / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def start(self) -> None:
        """Start unless it is running; returns when the management server answers."""
        if self.is_running:
            return
        # If the node started it, it would become a daemon and outlive the node.
        epmd_port = self._env["ERL_EPMD_PORT"]
        self._epmd = self._popen([_need(EPMD), "-port", epmd_port, "-address", HOST], group=0)
        self._notify_guard(-self._epmd.pid)
        self._server = self._popen([_need(SERVER)], group=self._epmd.pid)
        self._await_ready(self._server)

    def stop(self) -> None:
        """Stop the node; durable queues exist again after the next start."""
        self._end(self._server, signal.SIGTERM)
        self._end(self._epmd, signal.SIGTERM)
        self._notify_guard(0)

    def close(self) -> None:
        """Kill the node and remove its files.  Calling it twice is harmless."""
        if os.getpid() != self._owner or self._guard.stdin is None or self._guard.stdin.closed:
            return
        atexit.unregister(self.close)
        if self._epmd is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._epmd.pid, signal.SIGKILL)  # the node is a child of its script
        self._end(self._server, signal.SIGKILL)
        self._end(self._epmd, signal.SIGKILL)
        self._guard.stdin.close()  # it removes the folder
        self._guard.wait()

    def _environment(self) -> Mapping[str, str]:
        ports = {"port": self.port, "epmd_port": free_port(), "dist_port": free_port()}
        settings, plugins = self.folder / "rabbitmq.conf", self.folder / "plugins"
        settings.write_text(
            _SETTINGS.format(host=HOST, port=self.port, management_port=self.management_port)
        )
        plugins.write_text("[rabbitmq_management].\n")
        return {
            **environment(self.folder, **ports),
            "RABBITMQ_CONFIG_FILE": str(settings),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
        }

    def _popen(self, command: list[str], *, group: int) -> subprocess.Popen[bytes]:
        with (self.folder / "server.log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                env={**os.environ, **self._env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=group,  # Ctrl-C in the terminal is meant for the tests
            )

    def _await_ready(self, server: subprocess.Popen[bytes]) -> None:
        for _ in range(_START_STEPS):
            if self._has_figures():
                return
            with suppress(subprocess.TimeoutExpired):
                server.wait(_STEP_S)
                break
        raise RabbitFailedError(f"RabbitMQ did not start:\n{self.log}")

    def _has_figures(self) -> bool:
        """Whether it has statistics: it answers some time before it has any."""
        request = urllib.request.Request(f"{self.management_url}/api/nodes")
        request.add_header("Authorization", "Basic Z3Vlc3Q6Z3Vlc3Q=")
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return b'"mem_used"' in answer.read()
        except OSError:
            return False

    def _end(self, process: subprocess.Popen[bytes] | None, how: signal.Signals) -> None:
        if process is None or process.poll() is not None:
            return
        process.send_signal(how)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _notify_guard(self, pid: int) -> None:
        assert self._guard.stdin is not None
        self._guard.stdin.write(f"{pid}\n".encode())
        self._guard.stdin.flush()


def _need(program: str) -> str:
    found = debian.find([program], folders=SCRIPTS)
    if found is None:
        raise RabbitFailedError(MISSING)
    return str(found)


def main() -> int:
    reasons: list[str] = []
    if not _is_there():
        print("No RabbitMQ on this machine: installing Debian's package …", flush=True)
        reasons = debian.install("rabbitmq-server")
    if not _is_there():
        print(MISSING, *reasons, sep="\n", file=sys.stderr)
        return 1
    return 0


def _is_there() -> bool:
    return all(debian.find([name], folders=SCRIPTS) for name in (SERVER, EPMD))


if __name__ == "__main__":
    sys.exit(main())
