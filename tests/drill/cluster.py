"""A PostgreSQL cluster as operators run it: Patroni with etcd, HAProxy in front, one machine.

All processes end with the block. If we are root, they run as an unprivileged user.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.support import debian, postgres_binaries
from tests.support.private_servers import free_port

HOST = "127.0.0.1"
PROGRAMS = {"patroni": "patroni", "etcd": "etcd-server", "haproxy": "haproxy"}
_PATIENCE_S = 120
_STEP_S = 0.2

_PATRONI = """\
scope: drill
name: {name}
restapi: {{listen: "{host}:{rest}", connect_address: "{host}:{rest}"}}
etcd3: {{host: "{host}:{etcd}"}}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 2
    retry_timeout: 3
    synchronous_mode: true
  initdb: [{{encoding: UTF8}}, {{locale: C}}]
  pg_hba:
    - host all all {host}/32 trust
    - host replication all {host}/32 trust
postgresql:
  listen: "{host}:{port}"
  connect_address: "{host}:{port}"
  data_dir: {folder}/{name}
  bin_dir: {programs}
  pgpass: {folder}/{name}.pgpass
  authentication:
    superuser: {{username: postgres}}
    replication: {{username: postgres}}
  parameters: {{unix_socket_directories: "{folder}", max_connections: 100, shared_buffers: 32MB}}
"""
_HAPROXY = """\
global
  maxconn 500
defaults
  mode tcp
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  timeout check 1s
listen primary
  bind {host}:{port}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
"""


class DrillFailedError(RuntimeError):
    pass


class DrillCluster:
    def __init__(self, names: tuple[str, ...] = ("one", "two", "three")) -> None:
        self._user = pwd.getpwnam("nobody") if os.geteuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="drill-", dir="/tmp"))
        self.folder.chmod(0o755)
        if self._user is not None:
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        self.port = free_port()  # of HAProxy
        self._names = names
        self._ports = {name: free_port() for name in names}
        self._rests = {name: free_port() for name in names}
        self._etcd = free_port()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def primary(self) -> str | None:
        """The node that answers as the primary."""
        return next((name for name in self._names if self._is(name, "primary")), None)

    def await_synchronous(self) -> None:
        """Wait until the primary has a synchronous standby."""
        self._await("a synchronous standby", lambda: any(map(self._is_synchronous, self._names)))

    def kill(self, name: str) -> None:
        """SIGKILL a node: Patroni and all processes of its server."""
        pid = int((self.folder / name / "postmaster.pid").read_text().split()[0])
        self._processes.pop(name).kill()
        os.kill(pid, signal.SIGSTOP)
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for process in (*map(int, children), pid):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def close(self) -> None:
        for name in self._names:
            with suppress(OSError, KeyError, ValueError, IndexError):
                self.kill(name)
        for process in self._processes.values():
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self) -> None:
        programs = postgres_binaries.require()
        peer = free_port()
        client_url, peer_url = f"http://{HOST}:{self._etcd}", f"http://{HOST}:{peer}"
        self._run(
            "etcd",
            [
                f"--data-dir={self.folder / 'etcd'}",
                f"--listen-client-urls={client_url}",
                f"--advertise-client-urls={client_url}",
                f"--listen-peer-urls={peer_url}",
                f"--initial-advertise-peer-urls={peer_url}",
                f"--initial-cluster=default={peer_url}",
            ],
        )
        for name in self._names:
            text = _PATRONI.format(
                name=name,
                host=HOST,
                rest=self._rests[name],
                port=self._ports[name],
                etcd=self._etcd,
                folder=self.folder,
                programs=programs,
            )
            (self.folder / f"{name}.yml").write_text(text)
            self._run("patroni", [str(self.folder / f"{name}.yml")], name=name)
        servers = [
            f"  server {name} {HOST}:{self._ports[name]} check port {self._rests[name]}\n"
            for name in self._names
        ]
        config = self.folder / "haproxy.cfg"
        config.write_text(_HAPROXY.format(host=HOST, port=self.port) + "".join(servers))
        self._run("haproxy", ["-db", "-f", str(config)])
        self._await("a primary", lambda: self.primary() is not None)
        self.await_synchronous()

    def _run(self, program: str, words: list[str], *, name: str | None = None) -> None:
        path = debian.find((program,))
        if path is None:
            raise DrillFailedError(f"no {program}: apt-get install {PROGRAMS[program]}")
        with (self.folder / f"{name or program}.log").open("ab") as log:
            self._processes[name or program] = subprocess.Popen(
                [str(path), *words],
                cwd=self.folder,
                env={"PATH": os.defpath, "HOME": str(self.folder), "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                user=self._user.pw_uid if self._user else None,
                group=self._user.pw_gid if self._user else None,
                extra_groups=[] if self._user else None,
            )

    def _is(self, name: str, role: str) -> bool:
        url = f"http://{HOST}:{self._rests[name]}/{role}"
        try:
            with urllib.request.urlopen(url, timeout=1) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _is_synchronous(self, name: str) -> bool:
        return self._is(name, "synchronous")

    def _await(self, what: str, is_there: Callable[[], bool]) -> None:
        for _ in range(int(_PATIENCE_S / _STEP_S)):
            if is_there():
                return
            threading.Event().wait(_STEP_S)
        logs = "\n".join(
            f"{path.name}: {path.read_text(errors='replace')[-1500:]}"
            for path in sorted(self.folder.glob("*.log"))
        )
        raise DrillFailedError(f"there was not {what} in time\n{logs}")
