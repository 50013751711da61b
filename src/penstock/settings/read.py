"""One value as text or TOML has it, turned into what its setting holds."""

from __future__ import annotations

from datetime import timedelta

from penstock.domain.duration import duration_ms, duration_text
from penstock.settings.catalogue import Setting
from penstock.settings.units import size_bytes, size_text

SWITCHES = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}

Value = int | bool | str | None


def read(setting: Setting, given: object) -> Value:
    """Raises ValueError with what is allowed."""
    if given == "" and setting.default is None:
        return None
    value = _converted(setting, given)
    is_in_range = not isinstance(value, int) or (
        (setting.low is None or value >= setting.low)
        and (setting.high is None or value <= setting.high)
    )
    if not is_in_range or value == "" or (setting.choices and value not in setting.choices):
        raise ValueError(allowed(setting))
    return value


def allowed(setting: Setting) -> str:
    """The values that a setting takes, for people."""
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
        return f"{what} from {told(setting, setting.low)} to {told(setting, setting.high)}"
    return "text"


def told(setting: Setting, value: Value) -> str:
    """A value as people write it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and setting.is_duration:
        return duration_text(value)
    if isinstance(value, int) and setting.is_size:
        return size_text(value)
    return str(value)


def _converted(setting: Setting, given: object) -> Value:
    if setting.type is bool and isinstance(given, str):
        given = SWITCHES.get(given.strip().lower(), given)
    if setting.type is int and isinstance(given, str):
        given = _number(setting, given)
    if setting.is_duration and isinstance(given, timedelta):
        given = given // timedelta(milliseconds=1)
    # A bool is an int to Python, but `port = true` is a mistake.
    if type(given) is not setting.type:
        raise ValueError(allowed(setting))
    return given


def _number(setting: Setting, text: str) -> int:
    try:
        if setting.is_duration:
            return duration_ms(text)
        if setting.is_size:
            return size_bytes(text)
        return int(text)
    except ValueError:
        raise ValueError(allowed(setting)) from None
