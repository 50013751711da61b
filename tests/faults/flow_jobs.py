"""Jobs of random flows, for worker processes that are killed.

Each run is written down when it begins and when it ends.  Jobs that fail do so until the file
`healed` exists.
"""

from __future__ import annotations

import os
import threading
from pathlib import Path

from penstock import Bury, Penstock

FOLDER = Path(os.environ["STORY_FOLDER"])

app = Penstock(os.environ["STORY_URL"])


def run(node: str, fails: bool, takes_s: float, parents: list[str], expected: list[str]) -> str:
    note(f"begin {node}")
    threading.Event().wait(takes_s)
    if parents != expected:
        raise AssertionError(f"the results of the parents are {parents}, not {expected}")
    if fails and not (FOLDER / "healed").exists():
        raise LookupError(node)
    note(f"end {node}")
    return node


def note(text: str) -> None:
    with (FOLDER / "did").open("a") as file:
        file.write(f"{text}\n")


# Every killed worker and every server that is away at the end costs an attempt.
@app.job(queue="plain", attempts=50, backoff="50ms")
def plain(
    node: str, fails: bool, takes_s: float, parents: list[str], expected: list[str]
) -> str | Bury:
    try:
        return run(node, fails, takes_s, parents, expected)
    except LookupError:
        return Bury("it fails until it is healed")


@app.job(queue="ordered", attempts=2, backoff="50ms")
def ordered(node: str, fails: bool, takes_s: float, parents: list[str], expected: list[str]) -> str:
    return run(node, fails, takes_s, parents, expected)
