"""Migrations: numbered, checksummed, forward only.

Applied migrations must be identical to those we ship, so a released migration is neither edited nor
renumbered (tests/architecture/migrations.sha256).

Each day has its own tables.  In PostgreSQL a script can loop over them.  In SQLite it cannot, so
statements for them are at the end, after a line `-- For each day:`, with {day} in table names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from importlib import resources

import msgspec

from penstock.domain.errors import StoreRefused
from penstock.store.database import Database

_FOR_EACH_DAY = "-- For each day:\n"


class Migration(msgspec.Struct, frozen=True):
    number: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    def scripts(self, days: Iterable[int]) -> Iterator[str]:
        once, _, daily = self.text.partition(_FOR_EACH_DAY)
        yield once
        if daily:
            yield from (daily.replace("{day}", str(day)) for day in days)


def shipped(dialect: str) -> list[Migration]:
    folder = resources.files("penstock.store").joinpath("migrations", dialect)
    files = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return [
        Migration(int(name[:4]), name[5:-4], folder.joinpath(name).read_text(encoding="utf-8"))
        for name in files
    ]


def pending(db: Database) -> list[Migration]:
    """Migrations to apply.  Raises StoreRefused if the store has one that this version does not.

    A migration is recognised by its text: some were renumbered after stores had applied them.
    """
    migrations = shipped(db.dialect)
    applied = _applied(db)
    known = {migration.checksum for migration in migrations}
    for migration in migrations:
        checksum = applied.get(migration.number, migration.checksum)
        if checksum not in known:
            raise StoreRefused(_changed(migration, checksum))
    unknown = {number for number, checksum in applied.items() if checksum not in known}
    if unknown:
        raise StoreRefused(
            f"the store is newer than this version, which does not know migrations"
            f" {sorted(unknown)}: install the version that wrote it, or restore a backup taken"
            " before the upgrade"
        )
    return [m for m in migrations if m.checksum not in applied.values()]


def apply(db: Database, *, now: int) -> list[Migration]:
    """Apply pending migrations, all or nothing; several processes may try at once."""
    db.begin(durable=True)
    try:
        db.raise_time_limits()
        db.run("migrations.lock")
        db.run("migrations.create")
        todo = pending(db)
        _renumber(db, now=now)
        for migration in todo:
            for script in migration.scripts(_days(db)):
                db.script(script)
            _add(db, migration, now=now)
        db.commit()
    except BaseException:
        db.rollback()
        raise
    return todo


def _applied(db: Database) -> dict[int, str]:
    """Checksums by number."""
    return dict(db.rows("migrations.applied")) if db.rows("migrations.exists") else {}


def _changed(migration: Migration, checksum: str) -> str:
    return (
        f"migration {migration.number:04}_{migration.name} was applied to this store with another"
        f" text (checksum {checksum[:12]}) than this version ships ({migration.checksum[:12]}): an"
        " unreleased version wrote the store. Drain its queues with the version that wrote it and"
        " start this one on a new store, or restore a backup taken with a release"
    )


def _renumber(db: Database, *, now: int) -> None:
    """Record migrations that were applied under another number under their current one."""
    applied = _applied(db)
    numbers = {migration.checksum: migration for migration in shipped(db.dialect)}
    moved = [(n, numbers[c]) for n, c in applied.items() if numbers[c].number != n]
    for number, _ in moved:
        db.run("migrations.remove", {"number": number})
    for _, migration in moved:
        _add(db, migration, now=now)


def _add(db: Database, migration: Migration, *, now: int) -> None:
    params = {
        "number": migration.number,
        "name": migration.name,
        "checksum": migration.checksum,
        "applied_at": now,
    }
    db.run("migrations.add", params)


def _days(db: Database) -> Iterator[int]:
    """Lazy: the first migration creates the list of days."""
    for (day,) in db.rows("partitions.days"):
        yield day
