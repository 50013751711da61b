"""Numbered, checksummed, forward only.  What has been applied must be what we ship.

Days have tables of their own.  In PostgreSQL a script can go through those that are there.  In
SQLite it cannot: what a migration does to them stands at its end, behind a line `-- For each day:`,
with {day} in the tables' names.
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
    """What is not applied yet.  Raises StoreRefused if it was changed or is newer than we."""
    migrations = shipped(db.dialect)
    applied: dict[int, str] = {}
    if db.rows("migrations.exists"):
        applied = dict(db.rows("migrations.applied"))
    for migration in migrations:
        if applied.get(migration.number, migration.checksum) != migration.checksum:
            raise StoreRefused(
                f"migration {migration.number:04} was applied with another text than we ship"
            )
    unknown = applied.keys() - {migration.number for migration in migrations}
    if unknown:
        raise StoreRefused(f"the store is newer than this program: migrations {sorted(unknown)}")
    return [migration for migration in migrations if migration.number not in applied]


def apply(db: Database, *, now: int) -> list[Migration]:
    """Apply what is pending, all or nothing; several processes may try at once."""
    db.begin(durable=True)
    try:
        db.be_patient()
        db.run("migrations.lock")
        db.run("migrations.create")
        todo = pending(db)
        for migration in todo:
            for script in migration.scripts(_days(db)):
                db.script(script)
            params = {
                "number": migration.number,
                "name": migration.name,
                "checksum": migration.checksum,
                "applied_at": now,
            }
            db.run("migrations.add", params)
        db.commit()
    except BaseException:
        db.rollback()
        raise
    return todo


def _days(db: Database) -> Iterator[int]:
    """Not looked for before they are needed: the first migration makes the list of days."""
    for (day,) in db.rows("partitions.days"):
        yield day
