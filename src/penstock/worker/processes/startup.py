"""The start of a worker process: load the application, wait for the store, report leftovers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from typing import TypeVar

from penstock.domain.errors import (
    Forbidden,
    InvalidRequest,
    PenstockError,
    StoreRefused,
    Unauthenticated,
)
from penstock.worker.application import Application, JobSource, Unanswered
from penstock.worker.claimed_job import JobAct
from penstock.worker.processes.frames import WaitingForStore, Wire
from penstock.worker.processes.import_errors import import_error_text, not_an_application

_DEFAULT_NAME = "app"
T = TypeVar("T")
# Retrying would fail the same way.
FINAL = (InvalidRequest, StoreRefused, Unauthenticated, Forbidden)
_PAUSES_S = (0.2, 5.0)  # the first delay, and the longest
_MAX_NAMED = 10
_MAX_FETCHED = 1_000


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
        module = found = import_module(module_name)
    except (Exception, SystemExit) as error:
        raise InvalidRequest(import_error_text(place, error)) from error
    for part in (name or _DEFAULT_NAME).split("."):
        found = getattr(found, part, None)  # type: ignore[assignment]
    if not isinstance(found, Application):
        raise InvalidRequest(not_an_application(place, module, found))
    if url is not None:
        found.use(url, key=key)
    return found


def until_answered(ask: Callable[[], T], wire: Wire) -> T | None:
    """Ask until the store answers; None if the supervisor has ended this process."""
    pause_s, longest_s = _PAUSES_S
    has_waited = False
    while True:
        try:
            answer = ask()
        except FINAL:
            raise
        except (PenstockError, OSError) as error:
            text = str(error)
        else:
            if has_waited:
                wire.send(WaitingForStore(None))
            return answer
        wire.send(WaitingForStore(text))
        has_waited = True
        if wire.has_input(within_s=pause_s):  # a drain was requested, or the supervisor has exited
            return None
        pause_s = min(pause_s * 2, longest_s)


def report_leftovers(source: JobSource, leftovers: tuple[JobAct, ...]) -> None:
    """Report what the predecessor could not; a rejected act means another worker has the job."""
    for answer in source.act(leftovers) if leftovers else ():
        if isinstance(answer, Unanswered):
            raise ConnectionError(str(answer))


def unknown_queues(app: Application, queues: tuple[str, ...]) -> list[str]:
    """Return a warning for each queue that neither the application nor the store knows."""
    undeclared = [name for name in queues if name not in app.queues]
    if not undeclared:
        return []
    find = app.queue_names
    try:
        missing = [name for name in undeclared if name not in find(prefix=name, limit=1)]
        known = {name: sorted({*app.queues, *_names_near(name, find)}) for name in missing}
    except Forbidden:  # the key may not list queues
        lack = "is not declared by the application"
        return [f"queue {name!r} {lack}; {_hint(name, app.queues)}" for name in undeclared]
    lack = "does not exist, so nothing is claimed from it"
    return [f"queue {name!r} {lack}; {_hint(name, known[name])}" for name in missing]


def _names_near(name: str, find: Callable[..., list[str]]) -> list[str]:
    """Queue names with the same beginning: a store may have too many names to fetch them all."""
    near = find(prefix=name[: len(name) // 2], limit=_MAX_FETCHED)
    return near or find(prefix="", limit=_MAX_FETCHED)


def _hint(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=3)
    names = ", ".join(map(repr, close or known[:_MAX_NAMED]))
    return f"did you mean {names}?" if close else f"known are {names or 'none'}"
