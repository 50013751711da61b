"""Runs the commands and API calls that a dialog shows."""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

from penstock.edge.cli.main import main
from tests.console.conftest import run_in_thread
from tests.support.programs import need


def run_command(command: str, *, key: str | None = None) -> str:
    """Run `penstock …` with the shell's word splitting; it must succeed."""
    program, *words = shlex.split(command)
    assert program == "penstock", command
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        code = run_in_thread(lambda: main([*words, *(["--key", key] if key else [])]))
    assert code == 0, f"{command}: {errors.getvalue()}"
    return out.getvalue()


def run_call(command: str, *, key: str | None = None) -> Any:
    """Run `curl …` in a shell; the response must not be an error."""
    need("curl")
    assert command.startswith("curl "), command
    env = {**os.environ, "no_proxy": "*", **({"PENSTOCK_KEY": key} if key else {})}
    ended = subprocess.run(
        ["bash", "-c", command], env=env, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    answer = json.loads(ended.stdout or "null")
    assert "error" not in (answer or {}), answer
    return answer
