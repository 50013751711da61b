"""A private PgBouncer, which shares connections to a PostgreSQL server between transactions.

    with PgBouncer(cluster.port) as pooler:
        url = pooler.url("database")

It listens on 127.0.0.1 only, on a port that it keeps across restarts, and ends with its owner (see
server_guard.py).

    python -m tests.support.pgbouncer

is what `make test` runs first: it installs Debian's package where there is none, as root.
"""

from __future__ import annotations

import atexit
import os
import pwd
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.support import debian
from tests.support.private_servers import free_port, start_guard

HOST = "127.0.0.1"
MISSING = """\
No PgBouncer to test with: install it (Debian: apt-get install pgbouncer).
`make test` installs Debian's package by itself where it runs as root."""

_STEP_S = 0.02
_START_STEPS = 3_000
_STOP_S = 20
_CONFIG = """\
[databases]
* = host={host} port={server_port} user=postgres
[pgbouncer]
listen_addr = {host}
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
max_client_conn = 200
server_login_retry = 1
"""


class PgBouncerFailedError(RuntimeError):
    """There is no PgBouncer, or it did not start; the text ends with its output."""


class PgBouncer:
    def __init__(self, server_port: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-pgbouncer-"))
        self.folder.chmod(0o755)
        self.port = free_port()
        config = _CONFIG.format(host=HOST, port=self.port, server_port=server_port)
        (self.folder / "pgbouncer.ini").write_text(config)
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._guard = start_guard(self.folder)
        atexit.register(self.close)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def url(self, database: str) -> str:
        return f"postgresql://postgres@{HOST}:{self.port}/{database}"

    def start(self) -> None:
        """Start; returns when it accepts connections."""
        program = debian.find(("pgbouncer",))
        if program is None:
            raise PgBouncerFailedError(MISSING)
        user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None  # it refuses to run as root
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [str(program), str(self.folder / "pgbouncer.ini")],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=user.pw_uid if user else None,
                group=user.pw_gid if user else None,
                extra_groups=[] if user else None,
            )
        self._notify_guard(self._process.pid)
        for _ in range(_START_STEPS):
            with suppress(OSError), socket.create_connection((HOST, self.port), timeout=1):
                return
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_STEP_S)
                break
        output = (self.folder / "server.log").read_text(errors="replace")
        raise PgBouncerFailedError(f"PgBouncer did not start:\n{output}")

    def stop(self) -> None:
        """Close all connections at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(_STOP_S)
            self._process = None
            self._notify_guard(0)

    def close(self) -> None:
        if os.getpid() != self._owner or self._guard.stdin is None or self._guard.stdin.closed:
            return
        atexit.unregister(self.close)
        self.stop()
        self._guard.stdin.close()
        self._guard.wait()

    def _notify_guard(self, pid: int) -> None:
        assert self._guard.stdin is not None
        self._guard.stdin.write(f"{pid}\n".encode())
        self._guard.stdin.flush()


def main() -> int:
    if debian.find(("pgbouncer",)) is None:
        reasons = debian.install("pgbouncer")
        if reasons:
            print(MISSING, *reasons, sep="\n", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
