"""The settings in force as they may be shown to anybody: without the passwords inside."""

from __future__ import annotations

import re

from penstock.settings.catalogue import Setting
from penstock.settings.read import Value
from penstock.settings.values import Settings

# All up to the last @, because a password may have one that nobody has quoted.
_IN_URL = re.compile(r"(//[^:/@\s]*:)[^\s]*(@)")
_NAMED = re.compile(r"(?i)(password=)[^&\s]+")


def shown_value(settings: Settings, setting: Setting) -> Value:
    value: object = settings
    for name in setting.key.split("."):
        value = getattr(value, name)
    assert value is None or isinstance(value, int | str)
    return without_passwords(value) if isinstance(value, str) else value


def without_passwords(text: str) -> str:
    return _NAMED.sub(r"\1…", _IN_URL.sub(r"\1…\2", text))
