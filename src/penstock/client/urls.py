"""The URLs of stores and servers that an application can open."""

from __future__ import annotations

from penstock.domain.errors import InvalidRequest
from penstock.settings.store_url import STORES, check_store_url, quoted_url

SERVER = ("http://", "https://")


def check_url(url: object) -> str:
    """Raise InvalidRequest for a URL of neither a store nor a server."""
    if not isinstance(url, str) or not url.startswith((*STORES, *SERVER)):
        hint = "; is the variable set?" if url is None or url == "" else ""
        raise InvalidRequest(
            "Penstock opens sqlite:///path, postgresql://…, mysql://… or http://…, "
            f"not {quoted_url(url)}{hint}"
        )
    return url if url.startswith(SERVER) else check_store_url(url)
