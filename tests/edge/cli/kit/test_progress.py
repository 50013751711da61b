"""The progress bar: delayed, on stderr, only on a terminal."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from penstock.edge.cli.kit import progress as progress_module
from penstock.edge.cli.kit.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def wait_for(self, text: str) -> None:
        pause = threading.Event()
        assert any(text in self.getvalue() or pause.wait(0.02) for _ in range(500))


def a_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Call it in the test itself: pytest replaces stderr between a fixture and its test."""
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("TERM", "xterm")
    return shown


def test_a_fast_command_shows_no_bar(monkeypatch):
    terminal = a_terminal(monkeypatch)
    monkeypatch.setattr(progress_module, "SHOW_AFTER_S", 60)

    with progress("Working") as advance:
        advance(1, 2)

    assert "Working" not in terminal.getvalue()


def test_a_slow_command_shows_a_bar_and_removes_it(monkeypatch):
    terminal = a_terminal(monkeypatch)
    monkeypatch.setattr(progress_module, "SHOW_AFTER_S", 0)

    with progress("Working") as advance:
        advance(1, 2)
        terminal.wait_for("50%")

    assert terminal.getvalue().endswith("\x1b[1A\x1b[2K")


def test_output_for_a_pipe_stays_in_the_pipe_while_a_bar_is_shown(monkeypatch, capsys):
    terminal = a_terminal(monkeypatch)
    monkeypatch.setattr(progress_module, "SHOW_AFTER_S", 0)

    with progress("Working"):
        terminal.wait_for("Working")
        print("a record")

    assert capsys.readouterr().out == "a record\n"
    assert "a record" not in terminal.getvalue()


def test_without_a_terminal_no_bar_is_shown(monkeypatch, capsys):
    monkeypatch.setattr(progress_module, "SHOW_AFTER_S", 0)

    with progress("Working") as advance:
        advance(1, 2)

    assert capsys.readouterr() == ("", "")
