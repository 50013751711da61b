"""A private PostgreSQL cluster with default settings: fsync and synchronous_commit are on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from signal import SIGINT

from bench import install
from bench.processes import Server
from bench.workspace import free_port

USER = "postgres"


class Cluster:
    def __init__(self, *, may_install: bool) -> None:
        folders = [str(folder) for folder in _version_folders()]
        self._initdb = install.program(
            ["initdb"], packages=["postgresql"], may_install=may_install, folders=folders
        ).resolve()
        # PostgreSQL refuses to run as root.
        self._owner = USER if os.geteuid() == 0 else None

    def start(self, folder: Path) -> tuple[Server, str]:
        data = folder / "data"
        data.mkdir(mode=0o700)
        if self._owner:
            shutil.chown(data, self._owner, self._owner)
        subprocess.run(
            [str(self._initdb), "-D", str(data), "-U", USER, "-A", "trust", "--no-sync"],
            check=True,
            capture_output=True,
            user=self._owner,
            cwd="/",
        )
        port = free_port()
        command = [str(self._initdb.with_name("postgres")), "-D", str(data), "-p", str(port)]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]
        server = Server(command, folder=folder, user=self._owner, stop_signal=SIGINT)
        try:
            server.wait_until(lambda: self._answers(port))
        except BaseException:
            server.stop()
            raise
        return server, f"postgresql://{USER}@127.0.0.1:{port}/postgres"

    def _answers(self, port: int) -> bool:
        command = [str(self._initdb.with_name("pg_isready")), "-q", "-U", USER, "-h", "127.0.0.1"]
        return subprocess.run([*command, "-p", str(port)], check=False).returncode == 0


def _version_folders() -> list[Path]:
    """Debian keeps the server programs of each version off the path; newest first."""
    found = Path("/usr/lib/postgresql").glob("*/bin")
    return sorted(found, key=lambda folder: -int(re.sub(r"\D", "", folder.parent.name) or 0))
