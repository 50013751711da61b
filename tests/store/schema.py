"""The schema that all migrations together make, as SQL to read.

    python -m tests.store.schema      rewrites src/penstock/store/schema/*.sql

A test compares the committed files with the migrations on an empty database.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import apsw
import psycopg

import penstock.store
from penstock.store.mariadb.store import migrate as migrate_mariadb
from penstock.store.postgres.store import migrate
from penstock.store.store import migrate_sqlite
from tests.clocks import NOON
from tests.support.mariadb import MariadbServer
from tests.support.postgres import PostgresCluster

FOLDER = Path(penstock.store.__file__).parent / "schema"
HEAD = "-- Generated from the migrations by `make schema`; not read by the program.\n"

# Tables of single days are made while the store is used.
_OF_A_DAY = r"_[0-9]{5,}$"


def sqlite_schema(folder: Path) -> str:
    path = folder / "empty.db"
    migrate_sqlite(path, now=NOON)
    with apsw.Connection(str(path)) as db:
        rows = db.execute(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"
            " ORDER BY tbl_name, type <> 'table', name"
        ).fetchall()
    return HEAD + "".join(f"\n{sql};\n" for (sql,) in rows)


def postgres_schema(url: str) -> str:
    migrate(url)
    with psycopg.connect(url) as db:
        parts = [*_sequences(db), *_tables(db), *_functions(db)]
    return HEAD + "".join(f"\n{part};\n" for part in parts)


def mariadb_schema(url: str, server: MariadbServer) -> str:
    migrate_mariadb(url)
    with server.connect(url) as db, db.cursor() as cursor:
        cursor.execute("SHOW FULL TABLES")
        kinds = {name: kind.replace("BASE ", "") for name, kind in cursor.fetchall()}
        parts = []
        for name, kind in sorted(kinds.items()):
            cursor.execute(f"SHOW CREATE {kind} `{name}`")
            [(_, text)] = cursor.fetchall()
            text = re.sub(r" AUTO_INCREMENT=\d+", "", text).replace("`", "")
            parts.append(re.sub(r"(?m)^(  (?:UNIQUE )?)KEY ", r"\1INDEX ", text))
    return HEAD + "".join(f"\n{part};\n" for part in parts)


def _sequences(db: psycopg.Connection) -> Iterator[str]:
    """Sequences that belong to no column."""
    for name, kind in db.execute(
        "SELECT c.relname, format_type(s.seqtypid, NULL)"
        "  FROM pg_sequence s"
        "  JOIN pg_class c ON c.oid = s.seqrelid"
        "  LEFT JOIN pg_depend d ON d.objid = c.oid AND d.deptype IN ('a', 'i')"
        " WHERE d.objid IS NULL"
        " ORDER BY c.relname"
    ):
        yield f"CREATE SEQUENCE {name} AS {kind}"


def _tables(db: psycopg.Connection) -> Iterator[str]:
    tables = db.execute(
        "SELECT oid, relname, reloptions, relpersistence = 'u',"
        "       CASE relkind WHEN 'p' THEN pg_get_partkeydef(oid) END"
        "  FROM pg_class"
        " WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace"
        "   AND relname !~ %s"
        " ORDER BY relname",
        [_OF_A_DAY],
    ).fetchall()
    for oid, name, options, is_unlogged, key in tables:
        lines = ",\n".join(f"  {line}" for line in [*_columns(db, oid), *_constraints(db, oid)])
        made = "CREATE UNLOGGED TABLE" if is_unlogged else "CREATE TABLE"
        text = f"{made} {name} (\n{lines}\n)"
        if key is not None:
            text += f" PARTITION BY {key}"
        if options:
            text += " WITH (\n" + ",\n".join(f"  {option}" for option in options) + "\n)"
        yield text
        yield from _indexes(db, oid)


def _columns(db: psycopg.Connection, oid: int) -> Iterator[str]:
    for name, kind, collation, is_needed, default, identity in db.execute(
        "SELECT a.attname, format_type(a.atttypid, a.atttypmod),"
        "       CASE WHEN a.attcollation <> t.typcollation THEN c.collname END,"
        "       a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attidentity"
        "  FROM pg_attribute a"
        "  JOIN pg_type t ON t.oid = a.atttypid"
        "  LEFT JOIN pg_collation c ON c.oid = a.attcollation"
        "  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum"
        " WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped"
        " ORDER BY a.attnum",
        [oid],
    ):
        text = f"{name} {kind}"
        text += f' COLLATE "{collation}"' if collation else ""
        text += " NOT NULL" if is_needed else ""
        text += f" DEFAULT {default}" if default else ""
        how = {"d": "BY DEFAULT", "a": "ALWAYS"}.get(identity)
        text += f" GENERATED {how} AS IDENTITY" if how else ""
        yield text


def _constraints(db: psycopg.Connection, oid: int) -> Iterator[str]:
    for (text,) in db.execute(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE conrelid = %s AND contype <> 'n'"  # NOT NULL stands with its column
        " ORDER BY contype <> 'p', conname",
        [oid],
    ):
        yield text


def _indexes(db: psycopg.Connection, oid: int) -> Iterator[str]:
    for (text,) in db.execute(
        "SELECT pg_get_indexdef(i.indexrelid)"
        "  FROM pg_index i"
        "  JOIN pg_class c ON c.oid = i.indexrelid"
        "  LEFT JOIN pg_constraint k ON k.conindid = i.indexrelid"
        " WHERE i.indrelid = %s AND k.oid IS NULL"
        " ORDER BY c.relname",
        [oid],
    ):
        yield text.replace(" ON public.", " ON ").replace(" USING btree", "")


def _functions(db: psycopg.Connection) -> Iterator[str]:
    for (text,) in db.execute(
        "SELECT pg_get_functiondef(oid) FROM pg_proc"
        " WHERE pronamespace = 'public'::regnamespace ORDER BY proname"
    ):
        yield text.replace("public.", "").rstrip()


def write_all() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        (FOLDER / "sqlite.sql").write_text(sqlite_schema(Path(folder)))
    with PostgresCluster() as cluster:
        cluster.start()
        (FOLDER / "postgres.sql").write_text(postgres_schema(cluster.new_database()))
    with MariadbServer(in_memory=True) as server:
        (FOLDER / "mariadb.sql").write_text(mariadb_schema(server.new_database(), server))


if __name__ == "__main__":
    write_all()
