"""`penstock promote`, from a file to a database and on from there."""

import json

from penstock.store.postgres.store import migrate


def test_a_store_is_promoted_and_the_rows_are_counted(run, tmp_path, postgres_url):
    data = tmp_path / "data"
    run("migrate", "--data", data)
    run("keys", "create", "--name", "shop", "--role", "produce", "--data", data)
    migrate(postgres_url)

    moved = run("promote", "--json", "--data", data, "--to", postgres_url)

    assert moved.code == 0, moved
    assert json.loads(moved.out)["promoted"]["api_key"] == 1
    listed = run("keys", "--json", "--store", postgres_url)
    assert "shop" in listed.out


def test_a_database_without_our_schema_is_refused_with_a_hint_at_migrate(
    run, tmp_path, postgres_url
):
    data = tmp_path / "data"
    run("migrate", "--data", data)

    refused = run("promote", "--data", data, "--to", postgres_url)

    assert refused.code == 1
    assert "penstock migrate" in refused.err


def test_only_an_existing_sqlite_store_can_be_promoted(run, tmp_path):
    missing = run("promote", "--to", "postgresql://db/x", "--data", tmp_path / "nowhere")
    moved = run("promote", "--to", "postgresql://db/x", "--store", "postgresql://db/y")

    assert (missing.code, moved.code) == (1, 1)
    assert "there is no store" in missing.err
    assert "PostgreSQL already" in moved.err
    assert run("promote", "--data", tmp_path).code == 2
    assert not (tmp_path / "nowhere").exists()
