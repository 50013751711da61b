"""A progress bar on stderr, shown after a second and only on a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SHOW_AFTER_S = 1.0

Advance = Callable[[int, int | None], None]


@contextmanager
def progress(what: str, total: int | None = None, *, is_shown: bool = True) -> Iterator[Advance]:
    """Yield a function to call with (done, total); without a total the bar only pulses."""
    if not is_shown or not sys.stderr.isatty():
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
        # On a terminal, output appears above the bar; output to a pipe must reach the pipe.
        redirect_stdout=sys.stdout.isatty(),
    )
    task = bar.add_task(what, total=total)
    timer = threading.Timer(SHOW_AFTER_S, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda done, total: bar.update(task, completed=done, total=total)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()
