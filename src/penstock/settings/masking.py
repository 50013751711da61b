"""URLs without the passwords inside."""

from __future__ import annotations

import re

# All up to the last @, because a password may have one that is not quoted.
_IN_URL = re.compile(r"(//[^:/@\s]*:)[^\s]*(@)")
_NAMED = re.compile(r"(?i)(password=)[^&\s]+")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/*")


def without_passwords(text: str) -> str:
    """Of a URL in the form that a setting has."""
    return _NAMED.sub(r"\1…", _IN_URL.sub(r"\1…\2", text))


def quoted_url(url: object) -> str:
    """For the message about one that is wrong: all before its last @ may be a password."""
    if not isinstance(url, str):
        return repr(url)
    before, at, after = url.rpartition("@")
    if at:
        scheme = _SCHEME.match(before)
        url = f"{scheme[0] if scheme else ''}…@{after}"
    return repr(_NAMED.sub(r"\1…", url))
