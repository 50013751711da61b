"""The app of INSTALLED_APPS: creates Penstock's tables with `manage.py migrate`."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate

from penstock.django.applications import applications_in


class PenstockConfig(AppConfig):
    name = "penstock.django"
    label = "penstock"
    verbose_name = "Penstock"

    def ready(self) -> None:
        from penstock.django.backends import penstock_backends

        penstock_backends()  # their options are checked at the start
        post_migrate.connect(_migrate, sender=self)
        connection_created.connect(_open)


def _migrate(using: str, **_: Any) -> None:
    for application in applications_in(using):
        application.penstock.migrate()


def _open(connection: Any, **_: Any) -> None:
    """Open a store on SQLite before the first transaction: opening would wait for its end."""
    for application in applications_in(connection.alias):
        if application.is_on_sqlite and not connection.in_atomic_block:
            application.penstock.open()
