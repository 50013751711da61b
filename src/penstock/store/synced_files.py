"""What makes a file or the name of a file survive a power cut."""

from __future__ import annotations

import os
from pathlib import Path


def sync_path(path: Path) -> None:
    """Sync a file, or the names in a folder; raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
