"""The error of an application that cannot be imported: its own traceback, without our frames."""

from __future__ import annotations

import importlib
import os
import traceback
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType

from penstock.worker.application import Application

_OURS = f"{Path(__file__).parents[2]}{os.sep}"
_IMPORTING = ("<frozen importlib", str(importlib.__file__))


def import_error_text(place: str, error: BaseException) -> str:
    module = place.partition(":")[0]
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing and f"{module}.".startswith(f"{missing}."):
        return f"{place!r} cannot be imported: {_missing(missing)}"
    found = traceback.TracebackException.from_exception(error)
    _trim(found)
    text = "".join(found.format()).rstrip()
    return f"{place!r} cannot be imported:\n{text}"


def not_an_application(place: str, module: ModuleType, found: object) -> str:
    named = [name for name, value in vars(module).items() if isinstance(value, Application)]
    if named:
        names = " or ".join(f"{module.__name__}:{name}" for name in named)
        return f"{place!r} is not an application; did you mean {names}?"
    what = "there is no such name" if found is None else f"it is of type {type(found).__name__}"
    return f"{place!r} is not an application ({what}); it must be app = Penstock(…)"


def _missing(name: str) -> str:
    top, here = name.partition(".")[0], Path.cwd()
    known = {path.stem for path in _modules(here)}
    close = get_close_matches(top, known, n=3)
    if "." in name and top in known:
        return f"there is no module {name!r}"
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    return f"there is no module {name!r} in {here} or among the installed packages{hint}"


def _modules(folder: Path) -> Iterable[Path]:
    for path in folder.iterdir():
        if path.suffix == ".py" or (path.is_dir() and any(path.glob("*.py"))):
            yield path


def _trim(found: traceback.TracebackException) -> None:
    """Drop the frames that import, here and in the causes."""
    kept = [frame for frame in found.stack if not frame.filename.startswith((_OURS, *_IMPORTING))]
    found.stack = traceback.StackSummary.from_list(kept)
    for other in (found.__cause__, found.__context__, *(found.exceptions or ())):
        if other is not None:
            _trim(other)
