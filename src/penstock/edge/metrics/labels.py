"""Values of labels in Prometheus' text format."""

from __future__ import annotations


def escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
