"""SQLite's errors translated into ours."""

from __future__ import annotations

import apsw

from penstock.domain.errors import PenstockError, StoreDamaged, StoreUnavailable
from penstock.store.damage.log_damage import recovery_advice
from penstock.store.database import WriteLockTimeout


def is_damage(error: Exception) -> bool:
    """Whether it reports a wrong checksum or a malformed page."""
    if isinstance(error, apsw.CorruptError):
        return True
    return getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA


def storage_error(error: apsw.Error) -> PenstockError:
    """A violated constraint is the fault of one request; anything else may be the storage's."""
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return WriteLockTimeout("another program has held SQLite's write lock for too long")
    if is_damage(error):
        return StoreDamaged(f"the store is damaged: {error}. {recovery_advice()}")
    kind = PenstockError if isinstance(error, apsw.ConstraintError) else StoreUnavailable
    return kind(f"{type(error).__name__}: {error}")
