"""A bar on stderr for what takes longer than a second, and only if somebody is looking."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE_S = 1.0

Advance = Callable[[int, int | None], None]


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Advance]:
    """Gives a function to call with (done, total); without a total the bar only shows life."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
    )
    bar = Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        # On one terminal, lines are put above the bar; output for a pipe must stay in the pipe.
        redirect_stdout=sys.stdout.isatty(),
    )
    line = bar.add_task(what, total=total)
    later = threading.Timer(PATIENCE_S, bar.start)
    later.daemon = True
    later.start()
    try:
        yield lambda done, total: bar.update(line, completed=done, total=total)
    finally:
        later.cancel()
        later.join()
        bar.stop()
