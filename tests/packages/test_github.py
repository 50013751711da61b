"""The files that GitHub reads are valid and run the targets of the Makefile."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.architecture.source import ROOT

SCHEMAS = {
    "vendor.github-workflows": ".github/workflows/*.yml",
    "vendor.github-issue-forms": ".github/ISSUE_TEMPLATE/[!c]*.yml",
    "vendor.github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
}


@pytest.mark.parametrize("schema", SCHEMAS)
def test_the_file_follows_its_schema(schema: str) -> None:
    files = [str(path) for path in ROOT.glob(SCHEMAS[schema])]
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, *files]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert files
    assert done.returncode == 0, done.stdout


def test_ci_runs_targets_that_exist() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    named = set(re.findall(r"run: make (\S+)", workflow))

    assert named >= {"check", "test", "dist", "docs"}
    assert named <= set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
