"""No file has the markers that git leaves where two changes meet."""

import re
import subprocess
from pathlib import Path

from tests.architecture.source import ROOT

MARKER = re.compile(r"^(?:<{7}|>{7}) ", re.MULTILINE)


def test_no_file_has_conflict_markers():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]

    assert paths
    assert unresolved(paths) == []


def test_a_planted_marker_is_found(tmp_path):
    made = tmp_path / "Makefile"
    made.write_text("run:\n" + "<" * 7 + " HEAD\n")

    assert unresolved([made]) == ["Makefile"]


def unresolved(paths: list[Path]) -> list[str]:
    return [
        path.name
        for path in paths
        if path.is_file() and MARKER.search(path.read_text(encoding="utf-8", errors="replace"))
    ]
