"""A private MariaDB server in a temporary folder.

    with MariadbServer() as server:
        url = server.new_database()

It listens on a Unix socket in its folder and on a free TCP port of 127.0.0.1, both kept across
restarts. Its commits are synced like those of a real server; in memory that is free. It ends with
its owner, however the owner ends (see server_guard.py). If we are root, the server runs as an
unprivileged user. The program comes from Debian's package `mariadb-server-core`, which has no
service.
"""

import atexit
import itertools
import os
import pwd
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import pymysql
from pymysql.constants import CLIENT

from tests.support import debian
from tests.support.memory import memory_folder
from tests.support.private_servers import free_port, start_guard

STEP_S = 0.02
START_STEPS = 3_000
STOP_S = 20
PACKAGE = "mariadb-server-core"

SETTINGS = (
    "--no-defaults",
    "--skip-name-resolve",
    "--performance-schema=OFF",
    "--innodb-buffer-pool-size=128M",
    "--innodb-log-file-size=48M",
    "--innodb-flush-log-at-trx-commit=1",
    "--max-connections=300",
)
_SYSTEM_TABLES = (
    "mysql_system_tables.sql",
    "mysql_performance_tables.sql",
    "mysql_system_tables_data.sql",
)
_BEGIN = "create database mysql;\nuse mysql;\nset @auth_root_socket=NULL;\n"
_COLLATION = "CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"


class MariadbFailedError(RuntimeError):
    """The server did not start; the text ends with its log."""


class MariadbServer:
    def __init__(self, *, in_memory: bool = False, settings: Sequence[str] = ()) -> None:
        self._program = require()
        self._settings = settings
        self._user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self.folder = self._make_folder(in_memory=in_memory)
        self.port = free_port()
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = itertools.count(1)
        self._guard = start_guard(self.folder)
        atexit.register(self.close)
        self._init()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def log(self) -> str:
        path = self.folder / "server.log"
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def url(self, database: str) -> str:
        return f"mysql://root@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start unless it is running; returns when connections are accepted."""
        if self.is_running:
            return
        with (self.folder / "server.log").open("ab") as log:
            self._process = self._popen(
                [
                    f"--port={self.port}",
                    "--bind-address=127.0.0.1",
                    f"--socket={self.folder / 'socket'}",
                    f"--pid-file={self.folder / 'pid'}",
                ],
                stdin=subprocess.DEVNULL,
                output=log.fileno(),
            )
        self._notify_guard(self._process.pid)
        self._await_ready(self._process)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """A crash to recover from."""
        self._end(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def connect(self, url: str | None = None) -> pymysql.Connection:
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user="root",
            database=url and url.rpartition("/")[2],
            autocommit=True,
            client_flag=CLIENT.MULTI_STATEMENTS,
        )

    def new_database(self) -> str:
        """Return the URL of an empty database."""
        name = f"test_{next(self._numbers)}"
        self._run(f"CREATE DATABASE {name} {_COLLATION}")
        return self.url(name)

    def drop_database(self, url: str) -> None:
        self._run(f"DROP DATABASE IF EXISTS {url.rpartition('/')[2]}")

    def close(self) -> None:
        """Stop the server and remove its files. A forked child cannot; idempotent."""
        if os.getpid() != self._owner or self._guard.stdin is None or self._guard.stdin.closed:
            return
        atexit.unregister(self.close)
        self._end(signal.SIGKILL)  # nothing of it is needed any more
        self._guard.stdin.close()
        self._guard.wait()

    def _run(self, statement: str) -> None:
        connection = self.connect()
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
        finally:
            connection.close()

    def _make_folder(self, *, in_memory: bool) -> Path:
        parent = (memory_folder() if in_memory else None) or tempfile.gettempdir()
        folder = Path(tempfile.mkdtemp(prefix="penstock-mariadb-", dir=parent))
        (folder / "data").mkdir()
        if self._user is not None:
            for path in (folder, folder / "data"):
                os.chown(path, self._user.pw_uid, self._user.pw_gid)
        return folder

    def _init(self) -> None:
        """Create the system tables, as mariadb-install-db does, which is in a larger package."""
        script = system_tables()
        process = self._popen(["--bootstrap"], stdin=subprocess.PIPE, output=subprocess.PIPE)
        output, _ = process.communicate(script.encode())
        if process.returncode:
            raise MariadbFailedError(f"bootstrap failed:\n{output.decode(errors='replace')}")

    def _popen(self, options: Sequence[str], *, stdin: int, output: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [
                self._program,
                *SETTINGS,
                f"--datadir={self.folder / 'data'}",
                *self._settings,
                *options,
            ],
            cwd=self.folder,
            env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is meant for the tests, not for the server
            user=self._user.pw_uid if self._user else None,
            group=self._user.pw_gid if self._user else None,
            extra_groups=[] if self._user else None,
        )

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        for _ in range(START_STEPS):
            with suppress(pymysql.OperationalError):
                self.connect().close()
                return
            with suppress(subprocess.TimeoutExpired):
                process.wait(STEP_S)
                self._ended(process)
                break
        raise MariadbFailedError(f"MariaDB did not start:\n{self.log}")

    def _end(self, how: signal.Signals) -> None:
        process = self._process
        if process is None or not self.is_running:
            return
        process.send_signal(how)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
        self._ended(process)

    def _ended(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        self._process = None
        self._notify_guard(0)

    def _notify_guard(self, pid: int) -> None:
        assert self._guard.stdin is not None
        self._guard.stdin.write(f"{pid}\n".encode())
        self._guard.stdin.flush()


def system_tables() -> str:
    """SQL for `mariadbd --bootstrap`."""
    share = next(p for p in (Path("/usr/share/mysql"), Path("/usr/share/mariadb")) if p.is_dir())
    return _BEGIN + "".join((share / name).read_text() for name in _SYSTEM_TABLES)


def require() -> Path:
    """The server's program; installs Debian's package if we are root."""
    found = debian.find(["mariadbd"])
    if found is not None:
        return found
    reasons = debian.install(PACKAGE)
    found = debian.find(["mariadbd"])
    if found is None:
        raise MariadbFailedError("; ".join(["no MariaDB server on this machine", *reasons]))
    return found


if __name__ == "__main__":
    print(f"MariaDB: {require()}")
