"""The private RabbitMQ node that other tests use."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.waiting import eventually

PATIENCE_S = 60.0
ROOT = Path(__file__).resolve().parents[2]
OWNER = """
import sys
from tests.support.rabbitmq import RabbitNode
node = RabbitNode()
node.start()
print(node.folder, flush=True)
sys.stdin.read()
"""


def test_a_node_whose_owner_is_killed_ends_too_and_leaves_nothing_behind():
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert owner.stdout is not None
    assert owner.stdin is not None
    folder = Path(owner.stdout.readline().strip())
    assert (folder / "mnesia").is_dir()

    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdin.close()
    owner.stdout.close()

    eventually(lambda: not folder.exists() and not _using(folder), within_s=PATIENCE_S)


def _using(folder: Path) -> list[int]:
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            words = Path(f"/proc/{entry}/environ").read_bytes()
        except OSError:
            continue
        if str(folder).encode() in words:
            found.append(int(entry))
    return found
