"""Sizes as people write them: 64KiB, 1MiB."""

from __future__ import annotations

from penstock.domain.duration import measure, render

SIZES = {
    "B": 1,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
    "kB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
}
SIZE_FORM = "a size such as 64KiB or 1MiB (a bare number is bytes)"


def size_bytes(text: str) -> int:
    """Raises ValueError."""
    return measure(text, SIZES, "B", SIZE_FORM)


def size_text(value: int) -> str:
    binary = {name: size for name, size in SIZES.items() if "i" in name or name == "B"}
    return render(value, binary, "B")
