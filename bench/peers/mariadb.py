"""A private MariaDB server with default settings: each commit is synced."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pymysql

from bench import install
from bench.processes import Server, StartError
from bench.workspace import free_port
from tests.support.mariadb import PACKAGE, system_tables

USER = "daemon"  # has a group of the same name
DATABASE = "penstock"


class MariadbInstance:
    def __init__(self, *, may_install: bool) -> None:
        self._program = install.program(["mariadbd"], packages=[PACKAGE], may_install=may_install)
        # MariaDB refuses to run as root.
        self._owner = USER if os.geteuid() == 0 else None

    def start(self, folder: Path) -> tuple[Server, str]:
        data = folder / "data"
        data.mkdir(mode=0o700)
        if self._owner:
            shutil.chown(data, self._owner)
        command = [str(self._program), "--no-defaults", f"--datadir={data}"]
        done = subprocess.run(
            [*command, "--bootstrap"],
            input=system_tables().encode(),
            capture_output=True,
            check=False,
            user=self._owner,
            cwd="/",
        )
        if done.returncode != 0:
            raise StartError(f"mariadbd --bootstrap: {done.stderr.decode()[-400:]}")
        port = free_port()
        command += [f"--port={port}", "--bind-address=127.0.0.1", f"--socket={data / 'socket'}"]
        server = Server(command, folder=folder, user=self._owner)
        try:
            server.wait_until(lambda: _made_database(port))
        except BaseException:
            server.stop()
            raise
        return server, f"mysql://root@127.0.0.1:{port}/{DATABASE}"


def _made_database(port: int) -> bool:
    try:
        connection = pymysql.connect(host="127.0.0.1", port=port, user="root")
    except pymysql.OperationalError:
        return False
    with connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    return True
