"""The units are valid, run our commands, and leave the service little to attack."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.edge.cli.registry import find_command, load, parser_of
from tests.deploy.tools import DEPLOY, program, run

UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
MAX_EXPOSURE = 20  # of 100, as `systemd-analyze security` rates it
INSTANCE = "shop.jobs:app"


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The units as on a machine where the command is at its place."""
    command = Path(sys.executable).parent / "penstock"
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8").replace("/opt/penstock/bin/penstock", str(command))
        (tmp_path / unit.name.replace("@", "@demo")).write_text(text)
    return tmp_path


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_systemd_accepts_the_unit(installed: Path, unit: Path) -> None:
    systemd = program("systemd-analyze", "systemd")
    path = installed / unit.name.replace("@", "@demo")

    done = subprocess.run(
        [systemd, "verify", "--man=no", str(path)], capture_output=True, text=True, check=False
    )

    found = [line for line in done.stderr.splitlines() if unit.stem.rstrip("@") in line]
    assert found == []


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_the_service_is_hardened(installed: Path, unit: Path) -> None:
    systemd = program("systemd-analyze", "systemd")
    path = installed / unit.name.replace("@", "@demo")

    run(systemd, "security", "--offline=true", f"--threshold={MAX_EXPOSURE}", "--no-pager", path)


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_the_command_of_the_unit_is_valid(unit: Path) -> None:
    [line] = re.findall(r"^ExecStart=(.*)", unit.read_text(encoding="utf-8"), re.MULTILINE)

    name, rest = find_command(line.replace("%i", INSTANCE).split()[1:])

    assert name is not None
    parser_of(name, load(name), {}).read(rest)


def test_the_worker_logs_json() -> None:
    text = (DEPLOY / "systemd" / "penstock-worker@.service").read_text(encoding="utf-8")
    [line] = re.findall(r"^Environment=(PENSTOCK_.*)", text, re.MULTILINE)
    environment = dict(pair.split("=", 1) for pair in line.split())

    parser = parser_of("worker", load("worker"), environment)

    assert parser.read([INSTANCE]).log_format == "json"


def test_the_worker_has_more_time_than_its_drain_takes() -> None:
    text = (DEPLOY / "systemd" / "penstock-worker@.service").read_text(encoding="utf-8")

    [drain] = re.findall(r"--drain-for (\d+)s", text)
    [stop] = re.findall(r"TimeoutStopSec=(\d+)s", text)

    assert int(stop) > int(drain)
