"""The settings as a TOML template and as a table, both made from the catalogue."""

from __future__ import annotations

import json
from collections.abc import Iterator

from penstock.settings.catalogue import Setting, catalogue
from penstock.settings.read import allowed, told


def toml_template() -> str:
    """Every setting with its default, commented out: uncomment what shall differ."""
    lines = ["# Penstock's settings with their defaults; uncomment what shall differ."]
    section = ""
    for setting in catalogue().values():
        if setting.section != section:
            section = setting.section
            lines += ["", f"[{section}]"]
        lines += ["", f"# {setting.text}", f"# allowed: {allowed(setting)}"]
        lines.append(f"#{setting.name} = {_toml(setting)}")
    return "\n".join(lines) + "\n"


def markdown_table() -> str:
    """For docs/configuration.md, which a test compares with this."""
    return "\n".join(_rows()) + "\n"


def _rows() -> Iterator[str]:
    yield "| key | default | allowed | meaning | environment |"
    yield "|---|---|---|---|---|"
    for setting in catalogue().values():
        default = f"`{told(setting, setting.default)}`" if setting.default is not None else "unset"
        cells = (f"`{setting.key}`", default, allowed(setting), setting.text, f"`{setting.env}`")
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _toml(setting: Setting) -> str:
    if setting.default is None:
        return '""'
    if setting.type is int and not (setting.is_duration or setting.is_size):
        return str(setting.default)
    text = told(setting, setting.default)
    return text if setting.type is bool else json.dumps(text)
