"""Large blocks of memory go back to the system as soon as they are free.

The C library raises the size from which it maps a block of its own, up to 32 MiB, each time such a
block is freed.  Bodies and answers then come from its heaps, which keep what was once needed:
measured after 20 answers of 8 MiB at a time, 160 to 200 MB stayed instead of 105.
"""

from __future__ import annotations

import ctypes

_M_MMAP_THRESHOLD = -3
_BYTES = 256 * 1024


def return_large_blocks() -> bool:
    """True if the C library has such a setting: glibc does."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _BYTES) == 1)
