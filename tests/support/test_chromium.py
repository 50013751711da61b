"""The checks that `make test` does before it starts a browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import chromium, debian


def a_program(folder: Path, text: str) -> str:
    path = folder / "program"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_a_driver_that_does_not_start_fails_the_run_with_its_last_output(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = a_program(
        tmp_path, "echo 'libatomic.so.1: cannot open shared object file' >&2; exit 127"
    )
    monkeypatch.setattr(chromium, "compute_driver_executable", lambda: (node, "cli.js"))
    installed: list[str] = []
    monkeypatch.setattr(debian, "install", installed.append)

    assert chromium.main() == 1

    assert installed == ["libatomic1"]
    assert "libatomic.so.1: cannot open shared object file" in capsys.readouterr().err


def test_a_browser_that_does_not_start_fails_the_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(chromium.CHOSEN_BY_HAND, a_program(tmp_path, "exit 1"))

    assert chromium.main() == 1

    assert "No Chromium to test the console with" in capsys.readouterr().err
