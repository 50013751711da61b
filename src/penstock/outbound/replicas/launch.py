"""Starts a process of a fleet: its command line, its environment, its streams."""

from __future__ import annotations

import os
import subprocess
import sys

from penstock.domain.scaling.fleet import Processes
from penstock.ports.fleet_registry import FLEET, REPLICA

_STDERR = 2
_REPLICA_VARIABLE = "PENSTOCK_REPLICA"


class Launch:
    def __init__(
        self, fleet: str, spec: Processes, *, queues: tuple[str, ...], store_url: str
    ) -> None:
        """`store_url`: where workers get their jobs, unless the fleets file names another URL."""
        self._fleet = fleet
        self._spec = spec
        self._queues = spec.queues or queues
        self._url = spec.url or store_url

    def start(self, replica: str) -> subprocess.Popen[bytes]:
        """Raises OSError."""
        return subprocess.Popen(
            self.command(replica),
            cwd=self._spec.folder,
            env={**os.environ, **self._spec.env, **self.environment(replica)},
            stdin=subprocess.DEVNULL,
            stdout=_STDERR,  # keeps the autoscaler's own output clean
            start_new_session=True,  # Ctrl-C reaches only the autoscaler, which then drains them
        )

    def command(self, replica: str) -> list[str]:
        spec = self._spec
        if spec.app is None:
            return list(spec.run)
        flags = [
            *("--queues", ",".join(self._queues)),
            *("--label", f"{FLEET}={self._fleet}"),
            *("--label", f"{REPLICA}={replica}"),
            *("--drain-for", f"{spec.drain_ms}ms"),
        ]
        if spec.slots is not None:
            flags += ["--slots", str(spec.slots)]
        return [sys.executable, "-m", "penstock", "worker", spec.app, *flags, *spec.arguments]

    @staticmethod
    def mark(replica: str) -> str:
        """The environment variable that marks every process of this replica."""
        return f"{_REPLICA_VARIABLE}={replica}"

    def environment(self, replica: str) -> dict[str, str]:
        variables = {"PENSTOCK_FLEET": self._fleet, _REPLICA_VARIABLE: replica}
        if self._spec.app is not None:
            # Not on the command line, where all users could read its password.
            is_server = self._url.startswith(("http://", "https://"))
            name = "PENSTOCK_WORKER_SERVER" if is_server else "PENSTOCK_WORKER_STORE"
            variables[name] = self._url
        return variables
