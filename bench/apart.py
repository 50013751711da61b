"""Runs one job in a fresh Python process: JSON on its command line, JSON on its standard output.

A process per job keeps the generator's garbage, caches and event loop out of the next figure.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, TypeAlias

Task: TypeAlias = Callable[..., Coroutine[Any, Any, Mapping[str, Any]]]


class ApartError(Exception):
    """The process failed or hung; the text has the end of its output."""


def call_apart(module: str, task: str, job: Mapping[str, Any], *, within: float) -> dict[str, Any]:
    command = [sys.executable, "-m", module, task, json.dumps(job)]
    # Not subprocess.run: an interrupt must not leave a generator behind that loads the next run.
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            out, err = process.communicate(timeout=within)
        except subprocess.TimeoutExpired:
            process.kill()
            raise ApartError(f"the load generator hung for {within:.0f} s") from None
        except BaseException:
            process.kill()
            raise
    if process.returncode != 0:
        raise ApartError(err.strip()[-800:] or "the load generator broke without a word")
    answer: dict[str, Any] = json.loads(out)
    return answer


def serve(tasks: Mapping[str, Task]) -> None:
    """The other side: runs the named task under uvloop and prints its result."""
    task, job = tasks[sys.argv[1]], json.loads(sys.argv[2])
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(runner.run(task(**job))))
