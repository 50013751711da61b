"""The page about the SNS API: its example runs, and its list agrees with the code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from penstock.edge.sns.protocol import RIGHTS
from tests.docs.snippets import ROOT, read_blocks
from tests.edge.conftest import MakeServer

PAGE = "docs/sns.md"


def test_all_operations_are_listed_with_their_roles() -> None:
    section = (ROOT / PAGE).read_text(encoding="utf-8").partition("\n## Operations\n")[2]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.partition("\n## ")[0].splitlines()
        if line.startswith("| ")
    ][1:]

    listed = {operation: role for operation, role, _ in rows}
    assert listed == {name: "any" if role is None else role for name, (role, _) in RIGHTS.items()}


def test_the_example_runs(make_server: MakeServer, tmp_path: Path) -> None:
    environment = {
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "thing",
    }
    script = read_blocks(PAGE, "boto3").replace("http://127.0.0.1:7654", make_server().url)

    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.stdout == "order 7\n", done.stderr
