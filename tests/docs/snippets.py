"""Read the snippets of the docs and run them unchanged."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.edge.process import ServerProcess

ROOT = Path(__file__).parents[2]
ADDRESS = "127.0.0.1:7654"  # of the server, on every page
_PYTHON = Path(sys.executable)


def read_blocks(document: str, mark: str) -> str:
    """All blocks under `<!-- mark -->`, as one script."""
    text = (ROOT / document).read_text(encoding="utf-8")
    blocks = re.findall(rf"<!-- {mark} -->\n```\w*\n(.*?)```", text, re.DOTALL)
    return "\n".join(blocks)


def read_table(mark: str, page: str) -> list[list[str]]:
    """The cells of the table under a mark."""
    text = (ROOT / page).read_text(encoding="utf-8")
    found = re.search(rf"<!-- {mark} -->\n\|.*\n\|[-|]+\n((?:\|.*\n)+)", text)
    assert found is not None, mark
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in found[1].splitlines()]


def adapt(server: ServerProcess, text: str) -> str:
    """Replace the address and the command of a page by those of this test."""
    text = re.sub(r"^(\.venv/bin/)?penstock ", f"{_PYTHON} -m penstock ", text, flags=re.MULTILINE)
    return text.replace(ADDRESS, f"127.0.0.1:{server.port}")


def make_environment(server: ServerProcess) -> dict[str, str]:
    """The environment without this machine's AWS settings, and with our tools first in the path."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
    return clean | {
        "PATH": f"{_PYTHON.parent}:{clean['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "PENSTOCK_SERVER": server.url,
        "PENSTOCK_DATA": str(server.data),
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "no_proxy": "*",
    }


def run_script(server: ServerProcess, script: str, *, folder: Path | None = None) -> str:
    """Run it with bash, stop at the first error, and return what it prints."""
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", adapt(server, script)],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
        cwd=folder,
        env=make_environment(server),
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
