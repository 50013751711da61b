"""Load an application named as `module:name`."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from penstock.domain.errors import InvalidRequest
from penstock.worker.application import Application
from penstock.worker.error_text import error_text

_DEFAULT_NAME = "app"


def load_app(place: str, *, url: str | None = None, key: str | None = None) -> Application:
    """Import the application; the working directory is searched too.  Raises InvalidRequest.

    `url` and `key` replace the application's own.
    """
    module_name, _, name = place.partition(":")
    if not module_name:
        raise InvalidRequest(f"{place!r} does not name a module; use module:name")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found = import_module(module_name)
    except (Exception, SystemExit) as error:
        raise InvalidRequest(f"{place!r} cannot be imported: {error_text(error)}") from error
    for part in (name or _DEFAULT_NAME).split("."):
        found = getattr(found, part, None)  # type: ignore[assignment]
    if not isinstance(found, Application):
        raise InvalidRequest(f"{place!r} is not an application; it must be app = Penstock(…)")
    if url is not None:
        found.use(url, key=key)
    return found
