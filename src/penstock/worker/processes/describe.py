"""The URL of an application, which a process of its own imports: importing may do anything.

python -m penstock.worker.processes.describe shop.jobs:app
"""

from __future__ import annotations

import subprocess
import sys

from penstock.domain.errors import InvalidRequest
from penstock.worker.processes.startup import load_app

_MARK = "penstock-url: "  # the application may print as well


def url_of(place: str) -> str:
    """Raises InvalidRequest with the error of an application that cannot be imported."""
    command = [sys.executable, "-m", __name__, place]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in done.stdout.splitlines():
        if line.startswith(_MARK):
            return line.removeprefix(_MARK)
    raise InvalidRequest(done.stderr.strip() or f"{place!r} exited with code {done.returncode}")


def main() -> None:
    try:
        app = load_app(sys.argv[1])
    except InvalidRequest as error:
        sys.exit(str(error))
    print(f"{_MARK}{app.url}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
