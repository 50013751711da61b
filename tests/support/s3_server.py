"""moto's S3 server in a process of its own, on 127.0.0.1.

    with S3Server() as s3:
        s3.environment

It ends with its owner, however the owner ends (see server_guard.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.support.private_servers import free_port, start_guard

HOST = "127.0.0.1"
_STEP_S = 0.05
_START_STEPS = 2_400


class S3Server:
    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="penstock-s3-"))
        self.url = ""
        self._server: subprocess.Popen[bytes] | None = None
        self._guard = start_guard(self.folder)

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs to reach it, as with any other S3."""
        return {
            "AWS_ENDPOINT_URL": self.url,
            "AWS_ACCESS_KEY_ID": "penstock",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "eu-central-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def __enter__(self) -> Self:
        port = free_port()
        self.url = f"http://{HOST}:{port}"
        with (self.folder / "server.log").open("ab") as log:
            self._server = subprocess.Popen(
                [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)],
                cwd=self.folder,
                env={**os.environ, "MOTO_S3_CUSTOM_ENDPOINTS": self.url},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
            )
        assert self._guard.stdin is not None
        self._guard.stdin.write(f"{self._server.pid}\n".encode())
        self._guard.stdin.flush()
        self._await_ready(self._server)
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.wait()
        assert self._guard.stdin is not None
        self._guard.stdin.close()  # it removes the folder
        self._guard.wait()

    def _await_ready(self, server: subprocess.Popen[bytes]) -> None:
        for _ in range(_START_STEPS):
            with suppress(OSError), urllib.request.urlopen(f"{self.url}/moto-api/data.json"):
                return
            with suppress(subprocess.TimeoutExpired):
                server.wait(_STEP_S)
                break
        log = (self.folder / "server.log").read_text(errors="replace")
        raise RuntimeError(f"moto's server did not start:\n{log}")
