"""A standalone Spark cluster of one master and one worker, in processes of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyspark

from penstock.pipeline.spark.java import quiet_java_home
from tests.pipeline.process import environ_of_process
from tests.support.private_servers import free_port
from tests.support.spark_cache import java_options
from tests.support.waiting import eventually

_HOST = "127.0.0.1"
_PROGRAM = Path(pyspark.__file__).parent / "bin" / "spark-class"
_DEPLOY = "org.apache.spark.deploy"


@contextmanager
def a_cluster(folder: Path) -> Iterator[str]:
    """Yields the URL of the master."""
    port = free_port()
    url = f"spark://{_HOST}:{port}"
    with ExitStack() as stack:
        log = folder / "cluster.log"
        stack.enter_context(_started("master.Master", "--port", str(port), log=log))
        eventually(lambda: _answers(port))
        limits = "--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work")
        stack.enter_context(_started("worker.Worker", *limits, url, log=log))
        yield url


@contextmanager
def _started(name: str, *arguments: str, log: Path) -> Iterator[None]:
    environ = environ_of_process() | {
        "JAVA_HOME": quiet_java_home({k: v for k, v in os.environ.items() if k != "JAVA_HOME"}),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_DAEMON_JAVA_OPTS": java_options(),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_IP": _HOST,
    }
    with log.open("ab") as output:
        process = subprocess.Popen(
            [_PROGRAM, f"{_DEPLOY}.{name}", "--host", _HOST, "--webui-port", "0", *arguments],
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield
    finally:
        with suppress(ProcessLookupError):  # its executors are of the same session
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((_HOST, port)) == 0
