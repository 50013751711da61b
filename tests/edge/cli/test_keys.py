"""`penstock keys`"""

from __future__ import annotations

import re

import pytest

from penstock.domain.access.api_key import matches
from penstock.settings import Settings
from penstock.settings.store_url import without_passwords
from penstock.wiring.broker import open_broker
from tests.edge.cli.conftest import STORES


@STORES
def test_a_key_is_created_listed_and_revoked(run, where):
    run("migrate", *where)

    made = run("keys", "create", "--name", "shop", "--role", "produce", "--queues", "m.*", *where)
    listed = run("keys", *where, "--json").record

    assert re.fullmatch(r"pk_[0-9a-f]+_[0-9a-f]{40}\n", made.out)
    assert "not shown again" in made.err
    assert f"created in the store {_store(where)}" in made.err
    assert listed["id"] == made.out.split("_")[1]
    assert (listed["name"], listed["roles"], listed["queues"]) == ("shop", ["produce"], ["m.*"])
    assert listed["revoked_at"] is None
    revoked = run("keys", "revoke", listed["id"], *where)
    assert (revoked.code, f"revoked in {_store(where)};" in revoked.out) == (0, True)
    assert run("keys", *where, "--json").record["revoked_at"]
    assert run("keys", "revoke", listed["id"], *where).err.endswith("(not_found)\n")


def test_a_key_has_aws_credentials_until_it_is_revoked(run, tmp_path):
    where = ("--data", tmp_path)
    flags = ("--name", "shop", "--role", "produce")
    run("migrate", *where)
    made = run("keys", "create", *flags, *where, "--json").record

    shown = run("keys", "aws", made["id"], *where)

    assert shown.out.splitlines() == [
        f"AWS_ACCESS_KEY_ID={made['id']}",
        f"AWS_SECRET_ACCESS_KEY={made['aws_secret_access_key']}",
    ]
    assert made["aws_secret_access_key"] not in made["secret"]
    run("keys", "revoke", made["id"], *where)
    assert run("keys", "aws", made["id"], *where).err.endswith("(not_found)\n")


def test_only_a_hash_of_the_secret_is_stored(run, tmp_path):
    where = ("--data", tmp_path / "data")
    run("migrate", *where)

    secret = run("keys", "create", "--name", "a", "--role", "read", *where, "--json").record[
        "secret"
    ]

    broker = open_broker(Settings(data=str(tmp_path / "data")))
    [key] = broker.keys.all().result()
    broker.close()
    files = b"".join(path.read_bytes() for path in (tmp_path / "data").iterdir())
    assert matches(key, secret)
    assert secret.encode() not in files
    assert secret.split("_")[2].encode() not in files


@pytest.mark.parametrize("flags", [["--role", "king"], []])
def test_a_key_needs_roles_that_exist(run, tmp_path, flags):
    assert run("keys", "create", "--name", "a", *flags, "--data", tmp_path).code == 2


def _store(where):
    """The store as answers name it."""
    if "--store" in where:
        return without_passwords(where[1])
    return f"{where[1]}/penstock.db"
