"""The example of the page on simulations is what the command prints."""

from __future__ import annotations

import shlex
from pathlib import Path

from penstock.edge.cli.main import main
from tests.docs.snippets import read_blocks


def test_the_example_is_what_the_command_prints(tmp_path: Path, monkeypatch, capsys) -> None:
    [first, *shown] = read_blocks("docs/what-if.md", "example").splitlines()
    [_, program, *words] = shlex.split(first)
    monkeypatch.chdir(tmp_path)
    assert main(["pipeline", "demo", "--only-lake"]) == 0
    capsys.readouterr()

    assert (program, main(words)) == ("penstock", 0)

    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert printed == shown
