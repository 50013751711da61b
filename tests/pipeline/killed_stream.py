"""Streams that die at a step of a fold or a swap.

killed_stream.py STEP pipeline stream …     the command line: killed at that step, with its Java
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from typing import Any

FOLD = 2  # batches after which sums are merged
STEPS = ("before the fold", "after the fold", "before the swap", "in the swap", "after the swap")


Die = Callable[[], None]


def kill_this_process() -> None:
    os.killpg(0, signal.SIGKILL)


def arm(step: str, die: Die, replace: Callable[[Any, str, object], None] = setattr) -> None:
    """Every second batch folds, and the stream dies when it reaches the step."""
    from penstock.pipeline import streaming
    from penstock.pipeline.lake import SparkLake

    replace(streaming, "FOLD", FOLD)
    place, name, deadly = {
        "before the fold": (streaming, "_fold", lambda *_: die()),
        "after the fold": (streaming, "_fold", _then(die, streaming._fold)),
        "before the swap": (SparkLake, "_write", lambda *_: die()),
        "in the swap": (SparkLake, "_write", _then(die, _lose_days)),
        "after the swap": (SparkLake, "_write", _then(die, SparkLake._write)),
    }[step]
    replace(place, name, deadly)


def _lose_days(lake: Any, rows: Any, table: Any) -> None:
    """As if killed by its commit: Spark has deleted the old files, the new ones have no names."""
    for folder in os.scandir(f"{lake.tables_folder}/{table.name}"):
        if folder.name.startswith("dt="):
            shutil.rmtree(folder.path)


def _then(die: Die, run: Callable[..., object]) -> Callable[..., None]:
    def run_and_die(*given: object) -> None:
        run(*given)
        die()

    return run_and_die


if __name__ == "__main__":
    from penstock.edge.cli.main import main
    from penstock.edge.cli.pipeline import stream

    stream.MAX_FILES = 1
    arm(sys.argv[1], kill_this_process)
    sys.exit(main(sys.argv[2:]))
