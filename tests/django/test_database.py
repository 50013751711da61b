"""The store's URL from an entry of DATABASES."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from penstock.django.database import store_url

POSTGRES = {"ENGINE": "django.db.backends.postgresql", "NAME": "shop"}


def test_a_file_is_opened_as_django_writes_it(tmp_path: Path) -> None:
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": tmp_path / "shop.db"}

    assert store_url("default", database) == f"sqlite:///{tmp_path}/shop.db?checksums=off"


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ({}, "postgresql:///shop"),
        ({"USER": "ada", "HOST": "db", "PORT": 5433}, "postgresql://ada@/shop?host=db&port=5433"),
        ({"USER": "a@b", "PASSWORD": "p/w"}, "postgresql://a%40b:p%2Fw@/shop"),
        ({"HOST": "/run/pg"}, "postgresql:///shop?host=%2Frun%2Fpg"),
        (
            {"OPTIONS": {"sslmode": "verify-full", "pool": True}},
            "postgresql:///shop?sslmode=verify-full",
        ),
    ],
)
def test_the_url_of_postgresql_has_what_libpq_needs(entry: dict[str, object], url: str) -> None:
    assert store_url("default", POSTGRES | entry) == url


@pytest.mark.parametrize(
    ("engine", "name", "text"),
    [
        ("sqlite3", ":memory:", "is in memory"),
        ("sqlite3", "file:memorydb_default?mode=memory&cache=shared", "is in memory"),
        ("oracle", "shop", r"OPTIONS = \{'url'"),
    ],
)
def test_a_database_without_room_for_a_store_is_refused(engine: str, name: str, text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=text):
        store_url("default", {"ENGINE": f"django.db.backends.{engine}", "NAME": name})
