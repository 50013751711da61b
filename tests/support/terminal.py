"""A program on a pseudo-terminal, and what its user sees in the end."""

from __future__ import annotations

import os
import pty
import re
import subprocess
from collections.abc import Mapping, Sequence

_TOKEN = re.compile(r"\x1b\[([0-9;?]*)([A-Za-z])|\r|\n|[^\x1b\r\n]+")


def run_on_terminal(command: Sequence[str], *, env: Mapping[str, str]) -> tuple[int, str]:
    """Run it with stdout and stderr on a terminal; returns its exit code and what it wrote."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command,
        env={**env, "TERM": "xterm", "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    written = b""
    try:
        while part := _read(ours):
            written += part
    finally:
        os.close(ours)
        code = process.wait()
    return code, written.decode()


def screen(written: str) -> list[str]:
    """The lines that are left when all erasing is done."""
    lines, row, column = [""], 0, 0
    for match in _TOKEN.finditer(written):
        text, argument, command = match[0], match[1], match[2]
        if text == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif text == "\r":
            column = 0
        elif command == "A":
            row = max(0, row - int(argument or 1))
        elif command == "K":
            lines[row] = "" if argument == "2" else lines[row][:column]
        elif command is None:
            before, after = lines[row][:column], lines[row][column + len(text) :]
            lines[row] = before.ljust(column) + text + after
            column += len(text)
    return [line.rstrip() for line in lines if line.strip()]


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # Linux: the program has closed its end
        return b""
