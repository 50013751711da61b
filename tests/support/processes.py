"""Processes by their numbers."""

from __future__ import annotations

from pathlib import Path


def is_alive(pid: int) -> bool:
    """A zombie is not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:  # it may go while we look
        return False
