"""The default name of an application: the module that creates it.

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
    """The module with these globals; for a program being run, the name it is imported by."""
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
    """Record that this module has created an application without a name."""
    _unnamed.setdefault(module, WeakSet()).add(app)


def is_ambiguous(module: str) -> bool:
    """Whether it has created several, so that its name does not identify one of them."""
    return len(_unnamed.get(module, ())) > 1
