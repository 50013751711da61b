"""The tour of the README, line by line, as a newcomer would type it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.docs.snippets import ROOT, marked
from tests.edge.conftest import MakeProcess
from tests.support.programs import need

Run = Callable[[str], list[str]]

README_ADDRESS = "http://127.0.0.1:7654"


@pytest.fixture
def run(make_process: MakeProcess) -> Run:
    need("curl")
    server = make_process()

    def run_script(script: str) -> list[str]:
        script = script.replace(README_ADDRESS, server.url)
        script = script.replace(".venv/bin/penstock", f"{sys.executable} -m penstock")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env=os.environ | {"PENSTOCK_SERVER": server.url, "PENSTOCK_DATA": str(server.data)},
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout.splitlines()

    return run_script


def test_every_line_of_the_tour_works(run: Run) -> None:
    script = marked("README.md", "tour").replace("\ncurl ", "\necho; curl ")

    answers = "\n".join(run(script))

    assert '"max_attempts":3' in answers
    assert '"is_duplicate":true' in answers
    assert '"state":"done"' in answers
    assert '"code":"lease_lost"' in answers
    assert '"state":"waiting"' in answers
    assert '"outcome":"done"' in answers


def test_the_keys_of_the_operations_page_are_made_and_listed(run: Run) -> None:
    script = marked("docs/operations.md", "keys")

    lines = run(re.sub(r"^penstock ", f"{sys.executable} -m penstock ", script, flags=re.MULTILINE))

    assert any("pk_" in line for line in lines)
    assert any("shop" in line and "orders.*" in line for line in lines)


def test_the_readme_shows_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    assert "\nmake run\n" in text
    assert "\nmake test\n" in text
