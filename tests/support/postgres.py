"""A private PostgreSQL server in a temporary folder.

    with PostgresCluster() as cluster:
        url = cluster.new_database()

It listens on a Unix socket in its folder and on a free TCP port of 127.0.0.1, both kept across
restarts. It syncs to disk like a real server, unless the test disables that or keeps the files in
memory. It ends with its owner, however the owner ends (see server_guard.py). If we are root, the
server runs as an unprivileged user, because PostgreSQL refuses to run as root.
"""

from __future__ import annotations

import atexit
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import psycopg

from tests.support import postgres_binaries
from tests.support.memory import memory_folder
from tests.support.private_servers import free_port, start_guard

STEP_S = 0.01
START_STEPS = 6_000
STOP_S = 20

SETTINGS: Mapping[str, str] = {
    "max_connections": "200",
    "shared_buffers": "32MB",
    "max_wal_size": "512MB",
    "checkpoint_timeout": "30min",
    # A process for each database every time; tables are emptied for each test.
    "autovacuum_naptime": "20s",
    "timezone": "UTC",
    "log_min_messages": "warning",
}

_SUPERUSER = "postgres"
_SOCKET_PATH_LIMIT = 100


class PostgresFailedError(RuntimeError):
    """The server did not start; the text ends with its log."""


class PostgresCluster:
    def __init__(
        self,
        *,
        fsync: bool = True,
        in_memory: bool = False,
        settings: Mapping[str, str] | None = None,
        standby_of: PostgresCluster | None = None,
    ) -> None:
        """`standby_of`: a running server, of which this one is a streaming standby."""
        programs = postgres_binaries.require()
        self._user = _unprivileged_user()
        self.folder = _make_folder(self._user, in_memory=in_memory)
        self.port = free_port()
        self._owner = os.getpid()
        self._process: subprocess.Popen[bytes] | None = None
        self._admin: psycopg.Connection | None = None
        self._numbers = itertools.count(1)
        self._guard = start_guard(self.folder)
        atexit.register(self.close)
        self._bin = self._reachable(programs)
        self._create_files(standby_of)
        self._configure({**SETTINGS, "fsync": "on" if fsync else "off", **(settings or {})})

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def data(self) -> Path:
        return self.folder / "data"

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

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{_SUPERUSER}@127.0.0.1:{self.port}/{database}"

    def socket_url(self, database: str = "postgres") -> str:
        return f"postgresql://{_SUPERUSER}@/{database}?host={self.folder}&port={self.port}"

    def start(self) -> None:
        """Start unless it is running; returns when connections are accepted."""
        if self.is_running:
            return
        command: list[str | Path] = [self._bin / "postgres", "-D", self.data]
        with (self.folder / "server.log").open("ab") as log:
            self._process = self._popen(command, log.fileno())
        self._notify_guard(self._process.pid)
        self._await_ready(self._process)

    def stop(self) -> None:
        """Shut down in order: close sessions, write everything out."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """SIGKILL all processes of the server at once: a crash to recover from."""
        process = self._process
        if process is None or not self.is_running:
            return
        # Stopped first, so that it cannot notice the death of a child and clean up.
        process.send_signal(signal.SIGSTOP)
        for pid in [*_children(process.pid), process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._ended(process)

    def restart(self, *, immediate: bool = False) -> None:
        """Restart; after an `immediate` stop the server has to recover from its log."""
        self._end(signal.SIGQUIT if immediate else signal.SIGINT)
        self.start()

    def new_database(self, *, template: str = "template0") -> str:
        """Return the URL of an empty database, or of a copy of `template`, which must be idle."""
        name = f"test_{next(self._numbers)}"
        self._as_admin(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Drop a database; disconnects all clients."""
        name = url.rpartition("/")[2]
        self._as_admin(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def close(self) -> None:
        """Stop the server and remove its files. A forked child cannot; idempotent."""
        if os.getpid() != self._owner or self._guard.stdin is None or self._guard.stdin.closed:
            return
        atexit.unregister(self.close)
        self._end(signal.SIGQUIT)
        self._guard.stdin.close()
        self._guard.wait()

    def _reachable(self, folder: Path) -> Path:
        try:
            self._run([folder / "postgres", "--version"])
        except PermissionError:
            return postgres_binaries.copy(folder, self.folder / "server")
        return folder

    def set(self, name: str, value: str) -> None:
        """Change a setting of the running server."""
        self._as_admin(f"ALTER SYSTEM SET {name} = '{value}'")
        self._as_admin("SELECT pg_reload_conf()")

    def promote(self) -> None:
        """Let a standby become the primary; returns when it takes writes."""
        self._as_admin("SELECT pg_promote()")

    def _create_files(self, primary: PostgresCluster | None) -> None:
        if primary is None:
            options = ["--no-sync", "--encoding=UTF8", "--locale=C", "--auth=trust"]
            self._run([self._bin / "initdb", "-D", self.data, "-U", _SUPERUSER, *options])
        else:
            options = ["--no-sync", "--checkpoint=fast", "--write-recovery-conf"]
            source = f"host=127.0.0.1 port={primary.port} user={_SUPERUSER}"
            self._run([self._bin / "pg_basebackup", "-D", self.data, "-d", source, *options])

    def _configure(self, settings: Mapping[str, str]) -> None:
        address = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
        }
        with (self.data / "postgresql.conf").open("a") as conf:
            for name, value in {**address, **settings}.items():
                conf.write(f"{name} = '{value}'\n")

    def _run(self, command: Sequence[str | Path]) -> None:
        process = self._popen(command, subprocess.PIPE)
        output, _ = process.communicate()
        if process.returncode:
            raise PostgresFailedError(f"{command[0]} failed:\n{output.decode(errors='replace')}")

    def _popen(self, command: Sequence[str | Path], output: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env={"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is meant for the tests, not for the server
            user=self._user.pw_uid if self._user else None,
            group=self._user.pw_gid if self._user else None,
            extra_groups=[] if self._user else None,
        )

    def _await_ready(self, process: subprocess.Popen[bytes]) -> None:
        for _ in range(START_STEPS):
            if self._says_ready(process.pid):
                return
            with suppress(subprocess.TimeoutExpired):
                process.wait(STEP_S)
                self._ended(process)
                break
        raise PostgresFailedError(f"PostgreSQL did not start:\n{self.log}")

    def _says_ready(self, pid: int) -> bool:
        """The eighth line of the pid file, which pg_ctl also waits for."""
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() == "ready"

    def _end(self, how: signal.Signals) -> None:
        process = self._process
        if process is None or not self.is_running:
            return
        process.send_signal(how)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
        self._ended(process)

    def _ended(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        self._process = None
        self._notify_guard(0)
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def _notify_guard(self, pid: int) -> None:
        assert self._guard.stdin is not None
        self._guard.stdin.write(f"{pid}\n".encode())
        self._guard.stdin.flush()

    def _as_admin(self, statement: str) -> None:
        if self._admin is None or self._admin.closed:
            self._admin = psycopg.connect(self.socket_url(), autocommit=True)
        self._admin.execute(statement.encode())


def _unprivileged_user() -> pwd.struct_passwd | None:
    """None: our own user. Not `postgres`, who may own a real cluster on this machine."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None


def _make_folder(user: pwd.struct_passwd | None, *, in_memory: bool) -> Path:
    memory = memory_folder() if in_memory else None
    for parent in filter(None, (memory, tempfile.gettempdir(), "/tmp", "/var/tmp")):
        if len(parent) < _SOCKET_PATH_LIMIT - 40 and (user is None or _open_to_all(Path(parent))):
            break
    folder = Path(tempfile.mkdtemp(prefix="penstock-pg-", dir=parent))
    if user is not None:
        os.chown(folder, user.pw_uid, user.pw_gid)
    return folder


def _open_to_all(folder: Path) -> bool:
    path = folder.resolve()
    return all(part.is_dir() and part.stat().st_mode & 0o001 for part in (path, *path.parents))


def _children(pid: int) -> list[int]:
    if shutil.which("ps"):
        table = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True)
        rows = (line.split() for line in table.stdout.splitlines())
        return [int(child) for child, parent in rows if int(parent) == pid]
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
