"""The file and the commands of the page about definitions work as they are."""

from __future__ import annotations

from pathlib import Path

from tests.docs.snippets import read_blocks, run_script
from tests.edge.conftest import MakeProcess

PAGE = "docs/definitions.md"


def test_the_file_of_the_page_is_applied_and_exported(
    make_process: MakeProcess, tmp_path: Path
) -> None:
    (tmp_path / "definitions.yaml").write_text(read_blocks(PAGE, "definitions.yaml"))
    server = make_process()

    shown = run_script(server, read_blocks(PAGE, "apply"), folder=tmp_path)

    assert "+ queue mail\n" in shown
    assert "created recurring nightly\n" in shown
    assert "lease_ms: 60000" in (tmp_path / "exported.yaml").read_text()
