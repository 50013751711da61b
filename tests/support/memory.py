"""A folder in memory: syncing its files costs nothing, and no test reads them after a reboot."""

from __future__ import annotations

import shutil
from pathlib import Path

_MEMORY = Path("/dev/shm")
_ROOM = 4 * 1024**3  # containers often have 64 MB there


def memory_folder() -> str | None:
    """None where the machine has no such place, or a small one."""
    if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free >= _ROOM:
        return str(_MEMORY)
    return None
