"""The command line in this process, against a server in another thread."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from penstock.edge.cli.main import main
from tests.edge.live import LiveServer


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def records(self) -> list[Any]:
        """The JSON documents on stdout."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def record(self) -> Any:
        [record] = self.records
        return record


Run = Callable[..., Ran]
STORES = pytest.mark.parametrize("backend", ["sqlite", "postgres"])


@pytest.fixture(autouse=True)
def _no_settings_from_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith("PENSTOCK_") and not name.startswith("PENSTOCK_TEST_"):
            monkeypatch.delenv(name)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """run("send", "mail", "-", stdin="hello")"""

    def run(*words: object, stdin: str | bytes = "") -> Ran:
        content = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture
def cli(run: Run, server: LiveServer, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Like `run`, with the shared server as the default."""
    monkeypatch.setenv("PENSTOCK_SERVER", server.url)
    return run


@pytest.fixture
def where(request: pytest.FixtureRequest, backend: str, tmp_path: Path) -> list[str]:
    """The flags that name an empty store of this backend."""
    if backend == "postgres":
        return ["--store", request.getfixturevalue("postgres_url"), "--data", str(tmp_path)]
    return ["--data", str(tmp_path / "data")]
