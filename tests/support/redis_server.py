"""A private Redis server in a temporary folder.

    with RedisServer() as redis:
        redis.url

It listens on 127.0.0.1 only, writes nothing to disk, and ends with its owner, however the owner
ends (see server_guard.py).

    python -m tests.support.redis_server

is what `make test` runs first: it installs Debian's package where there is no Redis, as root.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import redis

from tests.support import debian
from tests.support.private_servers import free_port, start_guard

HOST = "127.0.0.1"
SERVERS = ("redis-server", "valkey-server")
MISSING = """\
No Redis server to test with: install it (Debian: apt-get install redis-server).
`make test` installs Debian's package by itself where it runs as root."""

_STEP_S = 0.05
_START_STEPS = 2_400


class RedisFailedError(RuntimeError):
    """There is no Redis, or it did not start; the text ends with its output."""


class RedisServer:
    def __init__(self, *, password: str | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-redis-"))
        self.port = free_port()
        self.url = f"redis://{HOST}:{self.port}/0"
        self._password = password
        self._owner = os.getpid()
        self._server: subprocess.Popen[bytes] | None = None
        self._guard = start_guard(self.folder)
        atexit.register(self.close)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def client(self) -> Any:
        return redis.Redis.from_url(self.url, password=self._password, decode_responses=True)

    def start(self) -> None:
        """Start; returns when it answers."""
        program = debian.find(SERVERS)
        if program is None:
            raise RedisFailedError(MISSING)
        words = ["--bind", HOST, "--port", str(self.port), "--save", "", "--appendonly", "no"]
        if self._password is not None:
            words += ["--requirepass", self._password]
        with (self.folder / "server.log").open("ab") as log:
            self._server = subprocess.Popen(
                [str(program), *words, "--dir", str(self.folder)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,  # Ctrl-C in the terminal is meant for the tests
            )
        assert self._guard.stdin is not None
        self._guard.stdin.write(f"{self._server.pid}\n".encode())
        self._guard.stdin.flush()
        self._await_ready(self._server)

    def close(self) -> None:
        """Kill the server and remove its files.  Calling it twice is harmless."""
        if os.getpid() != self._owner or self._guard.stdin is None or self._guard.stdin.closed:
            return
        atexit.unregister(self.close)
        if self._server is not None:
            self._server.kill()
            self._server.wait()
        self._guard.stdin.close()  # it removes the folder
        self._guard.wait()

    def _await_ready(self, server: subprocess.Popen[bytes]) -> None:
        for _ in range(_START_STEPS):
            with suppress(redis.RedisError), self.client() as client:
                client.ping()
                return
            with suppress(subprocess.TimeoutExpired):
                server.wait(_STEP_S)
                break
        log = (self.folder / "server.log").read_text(errors="replace")
        raise RedisFailedError(f"Redis did not start:\n{log}")


def main() -> int:
    reasons: list[str] = []
    if debian.find(SERVERS) is None:
        print("No Redis on this machine: installing Debian's package …", flush=True)
        reasons = debian.install("redis-server", "valkey-server")
    if debian.find(SERVERS) is None:
        print(MISSING, *reasons, sep="\n", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
