"""An operator's options for a damaged store: salvage it, or accept the loss."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from penstock.domain.errors import InvalidRequest
from penstock.outbound.clock import wall_ms
from penstock.settings import Settings
from penstock.store.damage import accept_loss as cut
from penstock.store.damage import salvage as copies

Progress = Callable[[int, int], None]
SalvageReport = copies.SalvageReport


def salvage(settings: Settings, target: Path, *, progress: Progress) -> SalvageReport:
    """Copy what is readable into a file that ends with .db, or into a new data folder."""
    source = _path(settings)
    if target.suffix != ".db":
        target = target / "penstock.db"
    return copies.salvage(source, target, now=wall_ms(), progress=progress)


def accept_loss(settings: Settings) -> cut.AcceptedLoss:
    return cut.accept_loss(_path(settings))


def _path(settings: Settings) -> Path:
    path = settings.sqlite_path
    if path is None:
        raise InvalidRequest(
            "only a SQLite store can be salvaged here; PostgreSQL has pg_amcheck, and backups"
        )
    return path
