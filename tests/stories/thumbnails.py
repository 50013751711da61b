"""Thumbnails, made by a fleet of workers that grows with the backlog.

python -m tests.stories.thumbnails 120     enqueues that many pictures
penstock autoscale --fleets fleets.toml    runs the workers
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from penstock import Penstock

DID = Path(os.environ["STORY_FOLDER"]) / "did"

app = Penstock(os.environ["STORY_URL"])


@app.job(queue="pictures", attempts=20, backoff="100ms")
def shrink(picture: int) -> None:
    threading.Event().wait(0.1)
    with DID.open("a") as file:
        file.write(f"{picture}\n")


if __name__ == "__main__":
    with app:
        shrink.enqueue_many(shrink.args(picture) for picture in range(int(sys.argv[1])))
