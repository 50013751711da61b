"""Settings as text: parsing, rendering, the TOML template and the table in the docs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta

from penstock.domain.duration import duration_ms, duration_text, measure
from penstock.domain.duration import render as render_measure
from penstock.settings.catalogue import Setting, catalogue
from penstock.settings.store_url import without_passwords
from penstock.settings.values import Settings

SWITCHES = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}
SIZES = {
    "B": 1,
    "KiB": 1024,
    "MiB": 1024**2,
    "GiB": 1024**3,
    "kB": 1000,
    "MB": 1000**2,
    "GB": 1000**3,
}
SIZE_FORM = "a size such as 64KiB or 1MiB (a bare number is bytes)"
_BINARY_SIZES = {name: size for name, size in SIZES.items() if "i" in name or name == "B"}

Value = int | bool | str | None


def size_bytes(text: str) -> int:
    """Parse a size; raises ValueError."""
    return measure(text, SIZES, "B", SIZE_FORM)


def size_text(value: int) -> str:
    """The shortest exact form: 65536 is 64KiB."""
    return render_measure(value, _BINARY_SIZES, "B")


def parse(setting: Setting, given: object) -> Value:
    """Convert text or a TOML value; raise ValueError with the allowed values."""
    if given == "" and setting.default is None:
        return None
    value = _convert(setting, given)
    is_in_range = not isinstance(value, int) or (
        (setting.low is None or value >= setting.low)
        and (setting.high is None or value <= setting.high)
    )
    if not is_in_range or value == "" or (setting.choices and value not in setting.choices):
        raise ValueError(allowed_values(setting))
    return value


def allowed_values(setting: Setting) -> str:
    """Describe the values that a setting accepts."""
    if setting.type is bool:
        return "true or false"
    if setting.choices:
        return ", ".join(setting.choices)
    if setting.type is int:
        what = "a whole number"
        if setting.is_duration:
            what = "a duration (30s, 5m, 12h, or milliseconds)"
        elif setting.is_size:
            what = "a size (64KiB, 1MiB, or bytes)"
        return f"{what} from {render(setting, setting.low)} to {render(setting, setting.high)}"
    return "text"


def render(setting: Setting, value: Value) -> str:
    """Render a value as a config file would have it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and setting.is_duration:
        return duration_text(value)
    if isinstance(value, int) and setting.is_size:
        return size_text(value)
    return str(value)


def masked_value(settings: Settings, setting: Setting) -> Value:
    """Render the value in force, with passwords masked."""
    value: object = settings
    for name in setting.key.split("."):
        value = getattr(value, name)
    assert value is None or isinstance(value, int | str)
    return without_passwords(value) if isinstance(value, str) else value


def toml_template() -> str:
    """Render a config file with every setting and its default, commented out."""
    lines = ["# Penstock's settings with their defaults; uncomment the ones to change."]
    section = ""
    for setting in catalogue().values():
        if setting.section != section:
            section = setting.section
            lines += ["", f"[{section}]"]
        lines += ["", f"# {setting.text}", f"# allowed: {allowed_values(setting)}"]
        lines.append(f"#{setting.name} = {_toml(setting)}")
    return "\n".join(lines) + "\n"


def markdown_table() -> str:
    """Render the table of docs/configuration.md; a test compares the two."""
    return "\n".join(_rows()) + "\n"


def _rows() -> Iterator[str]:
    yield "| key | default | allowed | meaning | environment |"
    yield "|---|---|---|---|---|"
    for setting in catalogue().values():
        default = "unset" if setting.default is None else f"`{render(setting, setting.default)}`"
        cells = (
            f"`{setting.key}`",
            default,
            allowed_values(setting),
            setting.text,
            f"`{setting.env}`",
        )
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _toml(setting: Setting) -> str:
    if setting.default is None:
        return '""'
    if setting.type is int and not (setting.is_duration or setting.is_size):
        return str(setting.default)
    text = render(setting, setting.default)
    return text if setting.type is bool else json.dumps(text)


def _convert(setting: Setting, given: object) -> Value:
    if setting.type is bool and isinstance(given, str):
        given = SWITCHES.get(given.strip().lower(), given)
    if setting.type is int and isinstance(given, str):
        given = _number(setting, given)
    if setting.is_duration and isinstance(given, timedelta):
        given = given // timedelta(milliseconds=1)
    # In Python a bool is an int, but `port = true` is a mistake.
    if type(given) is not setting.type:
        raise ValueError(allowed_values(setting))
    return given


def _number(setting: Setting, text: str) -> int:
    try:
        if setting.is_duration:
            return duration_ms(text)
        if setting.is_size:
            return size_bytes(text)
        return int(text)
    except ValueError:
        raise ValueError(allowed_values(setting)) from None
