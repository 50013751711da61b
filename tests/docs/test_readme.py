"""The tour of the README works, line by line."""

from __future__ import annotations

import re

import pytest

from tests.docs.snippets import ROOT, read_blocks, run_script
from tests.edge.conftest import MakeProcess
from tests.edge.process import ServerProcess
from tests.support.programs import need

LINES_OF_A_SCREEN = 45


@pytest.fixture
def server(make_process: MakeProcess) -> ServerProcess:
    need("curl")
    return make_process()


def test_every_line_of_the_tour_works(server: ServerProcess) -> None:
    script = read_blocks("README.md", "tour").replace("\ncurl ", "\necho; curl ")

    answers = run_script(server, script)

    assert '"max_attempts":3' in answers
    assert '"is_duplicate":true' in answers
    assert '"state":"done"' in answers
    assert '"code":"lease_lost"' in answers
    assert '"state":"waiting"' in answers
    assert '"outcome":"done"' in answers


def test_the_operations_page_creates_and_lists_keys(server: ServerProcess) -> None:
    lines = run_script(server, read_blocks("docs/operations.md", "keys")).splitlines()

    assert any("pk_" in line for line in lines)
    assert any("shop" in line and "orders.*" in line for line in lines)


def test_the_tour_begins_after_two_screens_at_most() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    assert text[: text.index("## Five minutes with curl")].count("\n") <= 2 * LINES_OF_A_SCREEN


def test_the_readme_shows_the_two_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    assert "\nmake run\n" in text
    assert "\nmake test\n" in text


def test_every_install_line_names_our_distribution() -> None:
    """`pip install penstock` would install another project's package."""
    another = re.compile(r"pip install ['\"]?penstock(?!-queue)")
    files = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *(ROOT / "src").rglob("*.*")]

    found = [path.name for path in files if another.search(path.read_text(errors="replace"))]

    assert found == []
