"""The settings in force as they may be shown to anybody: without the passwords inside."""

from __future__ import annotations

from penstock.settings.catalogue import Setting
from penstock.settings.masking import without_passwords
from penstock.settings.read import Value
from penstock.settings.values import Settings


def shown_value(settings: Settings, setting: Setting) -> Value:
    value: object = settings
    for name in setting.key.split("."):
        value = getattr(value, name)
    assert value is None or isinstance(value, int | str)
    return without_passwords(value) if isinstance(value, str) else value
