"""Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

Sample = tuple[Mapping[str, str], float | str]  # labels and value


def family(
    name: str, help_text: str, samples: Iterable[Sample], *, kind: str = "gauge"
) -> Iterator[str]:
    """The lines of one metric: its description and samples."""
    yield f"# HELP {name} {help_text}\n"
    yield f"# TYPE {name} {kind}\n"
    for labels, value in samples:
        yield sample(name, labels, value)


def sample(name: str, labels: Mapping[str, str], value: float | str) -> str:
    pairs = ",".join(f'{label}="{_escape(text)}"' for label, text in labels.items())
    return f"{name}{{{pairs}}} {value}\n" if pairs else f"{name} {value}\n"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
