"""What an application is called if it was not given a name: the module that made it.

The name must be the same after every restart, because recurring work belongs to it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakSet

_unnamed: dict[str, WeakSet[Any]] = {}


def module_of(variables: Mapping[str, Any]) -> str:
    """The name of the module with these variables; of a program that is run, as it is imported."""
    name = str(variables.get("__name__", "__main__"))
    if name != "__main__":
        return name
    spec = variables.get("__spec__")
    if spec is not None:  # python -m shop.jobs
        return str(spec.name).removesuffix(".__main__")
    file = variables.get("__file__")  # python jobs.py; missing in an interactive session
    return name if file is None else Path(file).stem


def caller(depth: int) -> str:
    return module_of(sys._getframe(depth + 1).f_globals)


def note(app: object, module: str) -> None:
    """This module has made an application and not named it."""
    _unnamed.setdefault(module, WeakSet()).add(app)


def is_ambiguous(module: str) -> bool:
    """Has it made several?  Then its name says not which of them is meant."""
    return len(_unnamed.get(module, ())) > 1
