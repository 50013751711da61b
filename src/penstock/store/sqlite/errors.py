"""What errors of SQLite mean for a request."""

from __future__ import annotations

import apsw

from penstock.domain.errors import PenstockError, StoreDamaged, StoreUnavailable
from penstock.store.damage.log_damage import what_to_do
from penstock.store.database import Occupied


def is_damage(error: Exception) -> bool:
    """A wrong checksum, or a page that is not what it should be."""
    if isinstance(error, apsw.CorruptError):
        return True
    return getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA


def storage_error(error: apsw.Error) -> PenstockError:
    """A broken rule is the fault of one request; anything else may be the storage's."""
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return Occupied("another program has kept the store to itself for too long")
    if is_damage(error):
        return StoreDamaged(f"the store is damaged: {error}. {what_to_do()}")
    kind = PenstockError if isinstance(error, apsw.ConstraintError) else StoreUnavailable
    return kind(f"{type(error).__name__}: {error}")
