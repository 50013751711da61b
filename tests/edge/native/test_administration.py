"""Keys and settings over HTTP: visible only to callers that may see everything, without secrets."""

from __future__ import annotations

import pytest

from penstock.domain.access.api_key import Role
from penstock.settings.store_url import without_passwords
from tests.edge.api import Api, assert_refused
from tests.edge.native.conftest import LetIn


def test_keys_are_listed_without_their_secrets(let_in: LetIn) -> None:
    reader = let_in(Role.READ)

    answer = reader.call("GET", "/v1/keys")

    [key] = [one for one in answer.json()["keys"] if one["roles"] == ["read"]][-1:]
    assert key.keys() == {"id", "name", "roles", "queues", "created_at"}
    assert "hash" not in answer.text
    secret = str(reader.http.headers["Authorization"]).split("_")[2]
    assert secret not in answer.text


def test_a_key_for_some_queues_sees_neither(let_in: LetIn) -> None:
    some = let_in(Role.READ, queues=("mail*",))

    for path in ("/v1/keys", "/v1/settings"):
        assert_refused(some.call("GET", path), 403, "forbidden")


def test_settings_are_listed_as_a_config_file_would_write_them(api: Api) -> None:
    by_key = {one["key"]: one for one in api.get("/v1/settings")["settings"]}

    assert by_key["limits.max_batch"]["is_default"] is True
    assert by_key["queues.auto_create"]["value"] in ("true", "false")
    assert by_key["server.port"]["env"] == "PENSTOCK_SERVER_PORT"
    assert by_key["server.drain_ms"]["default"] == "10s"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cret@db/x",
        "postgresql://me:s3cret@x:s3cret@db/x",
        "postgresql://me:s3c/ret@db/x",
        "postgresql://db/x?user=me&password=s3cret",
        "postgresql://db/x?sslpassword=s3cret&sslmode=require",
    ],
)
def test_a_password_in_a_url_is_not_shown(url: str) -> None:
    shown = without_passwords(url)

    assert "s3c" not in shown
    assert "db/x" in shown
