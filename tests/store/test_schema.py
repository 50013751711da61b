"""The committed schema equals that of an empty database after all migrations."""

import re
from pathlib import Path

from tests.store import schema
from tests.support.mariadb import MariadbServer


def test_the_schema_of_sqlite_is_up_to_date(tmp_path: Path) -> None:
    assert (schema.FOLDER / "sqlite.sql").read_text() == schema.sqlite_schema(tmp_path)


def test_the_schema_of_postgresql_is_up_to_date(postgres_url: str) -> None:
    assert (schema.FOLDER / "postgres.sql").read_text() == schema.postgres_schema(postgres_url)


def test_the_schema_of_mariadb_is_up_to_date(
    mariadb_url: str, mariadb_server: MariadbServer
) -> None:
    found = schema.mariadb_schema(mariadb_url, mariadb_server)

    assert (schema.FOLDER / "mariadb.sql").read_text() == found


def test_the_tables_of_mariadb_have_the_columns_of_postgresql() -> None:
    """Its own tables stand for locks and wake-ups; its own columns stand for partial indexes."""
    postgres, mariadb = (columns(f"{name}.sql") for name in ("postgres", "mariadb"))

    assert mariadb.keys() - postgres.keys() == {"lock_slot", "wakeup"}
    assert postgres.keys() - mariadb.keys() == set()
    differing = {name: mariadb[name] ^ postgres[name] for name in postgres}
    assert {name: more for name, more in differing.items() if more} == {
        "message": {"live_group", "ready_kind", "unclaimed_until", "dead_no"},
        "move_task": {"active_source_no"},
        "queue": {"live_name"},
    }


def columns(file: str) -> dict[str, set[str]]:
    tables = re.findall(
        r"CREATE (?:UNLOGGED )?TABLE (\w+) \((.*?)\n\)",
        (schema.FOLDER / file).read_text(),
        re.DOTALL,
    )
    return {name: set(re.findall(r"^  ([a-z]\w*) ", lines, re.MULTILINE)) for name, lines in tables}
