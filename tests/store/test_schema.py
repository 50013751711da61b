"""The committed schema equals that of an empty database after all migrations."""

from pathlib import Path

from tests.store import schema


def test_the_schema_of_sqlite_is_up_to_date(tmp_path: Path) -> None:
    assert (schema.FOLDER / "sqlite.sql").read_text() == schema.sqlite_schema(tmp_path)


def test_the_schema_of_postgresql_is_up_to_date(postgres_url: str) -> None:
    assert (schema.FOLDER / "postgres.sql").read_text() == schema.postgres_schema(postgres_url)
