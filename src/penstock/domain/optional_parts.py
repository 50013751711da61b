"""Optional parts of the installation, and what to run when one is missing."""

from __future__ import annotations

DISTRIBUTION = "penstock-queue"  # `penstock` on the package index is another project


def not_installed(what: str, extra: str) -> str:
    """Such as: PostgreSQL support is not installed: pip install 'penstock-queue[postgres]'."""
    return f"{what} is not installed: pip install '{DISTRIBUTION}[{extra}]'"
