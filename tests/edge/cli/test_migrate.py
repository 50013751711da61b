"""`penstock migrate`"""

from __future__ import annotations

from tests.edge.cli.conftest import STORES


@STORES
def test_a_store_is_migrated_once(run, where):
    pending = run("migrate", *where, "--sql").out
    first = run("migrate", *where, "--json").record["applied"]

    assert "CREATE TABLE" in pending
    assert all(name in pending for name in first) or "COMMIT" in pending
    assert first
    assert run("migrate", *where, "--json").record["applied"] == []
    assert run("migrate", *where).out == "the schema is up to date\n"
    assert run("migrate", *where, "--sql").out == ""
