"""What workers import: `penstock worker penstock.django.worker:default` is an entry of TASKS."""

from __future__ import annotations

import django
from django.core.exceptions import ImproperlyConfigured

from penstock import Penstock

django.setup()


def __getattr__(alias: str) -> Penstock:
    from penstock.django.backends import discovered

    if alias.startswith("_"):
        raise AttributeError(alias)
    try:
        return discovered(alias)
    except ImproperlyConfigured as error:
        raise AttributeError(str(error)) from error
