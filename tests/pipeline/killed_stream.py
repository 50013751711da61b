"""The command line in a process that is killed, with its Java, when it reaches a step of a stream.

killed_stream.py STEP pipeline stream …
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


def die(*_: object) -> None:
    os.killpg(0, signal.SIGKILL)


def lose_day(lake: Any, rows: Any, table: Any) -> None:
    """As if killed by its commit: Spark has deleted the old files, the new ones have no names."""
    for folder in os.scandir(f"{lake.tables_folder}/{table.name}"):
        if folder.name.startswith("dt="):
            shutil.rmtree(folder.path)
    die()


def then_die(run: Callable[..., object]) -> Callable[..., None]:
    def run_and_die(*given: object) -> None:
        run(*given)
        die()

    return run_and_die


def arm(step: str) -> None:
    from penstock.edge.cli.pipeline import stream
    from penstock.pipeline import streaming
    from penstock.pipeline.lake import SparkLake

    streaming.FOLD = FOLD
    stream.MAX_FILES = 1
    place, name, deadly = {
        "before the fold": (streaming, "_fold", die),
        "after the fold": (streaming, "_fold", then_die(streaming._fold)),
        "before the swap": (SparkLake, "_write", die),
        "in the swap": (SparkLake, "_write", lose_day),
        "after the swap": (SparkLake, "_write", then_die(SparkLake._write)),
    }[step]
    setattr(place, name, deadly)


if __name__ == "__main__":
    from penstock.edge.cli.main import main

    arm(sys.argv[1])
    sys.exit(main(sys.argv[2:]))
