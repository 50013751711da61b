"""Workers that are counted and scaled by programs of the user's."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from penstock.domain.errors import FleetsRefused, ReplicasUnavailable
from penstock.domain.scaling.fleet import Command
from penstock.domain.scaling.recommendation import Replicas
from penstock.outbound.replicas.command import CommandReplicas
from penstock.outbound.replicas.process_table import birth
from tests.clocks import NOON
from tests.support.waiting import eventually


def _fleet(*, scale: str = "true", count: str = "echo 3", timeout_ms: int = 60_000):
    spec = Command(scale=("sh", "-c", scale), count=("sh", "-c", count), timeout_ms=timeout_ms)
    return CommandReplicas("mail", spec)


def test_what_a_count_prints_is_how_many_there_are():
    assert _fleet(count="echo ' 3 '").count(now=NOON) == Replicas(running=3, requested=3)


def test_a_count_may_tell_more_than_a_number():
    told = """echo '{"running": 2, "starting": 1, "requested": 5}'"""

    assert _fleet(count=told).count(now=NOON) == Replicas(running=2, starting=1, requested=5)
    assert _fleet(count="""echo '{"running": 2}'""").count(now=NOON).requested == 2


def test_a_count_without_requests_goes_by_the_last_scale_that_worked():
    fleet = _fleet(count="echo 3", scale="true")
    fleet.scale_to(5, now=NOON)

    assert fleet.count(now=NOON) == Replicas(running=3, requested=5)


def test_a_scale_that_failed_requests_nothing():
    fleet = _fleet(count="echo 3", scale="exit 1")
    with pytest.raises(ReplicasUnavailable):
        fleet.scale_to(5, now=NOON)

    assert fleet.count(now=NOON) == Replicas(running=3, requested=3)


def test_scaling_tells_the_command_what_is_there_and_what_is_wanted(tmp_path: Path):
    out = tmp_path / "out"
    spec = Command(
        scale=("sh", "-c", f'echo "$@" > {out}', "sh", "{fleet}", "{wanted}/{current}", "{change}"),
        count=("echo", "3"),
    )

    CommandReplicas("mail", spec).scale_to(1, now=NOON)

    assert out.read_text() == "mail 1/3 -2\n"


def test_arguments_are_passed_as_they_are_and_no_shell_reads_them(tmp_path: Path):
    out = tmp_path / "out"
    spec = Command(scale=("cp", "/dev/null", f"{out} $(touch x); {{fleet}}"), count=("echo", "0"))

    CommandReplicas("mail", spec).scale_to(1, now=NOON)

    assert [file.name for file in tmp_path.iterdir()] == ["out $(touch x); mail"]


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("echo many", "printed 'many', which is not a number"),
        ("echo", "printed '', which is not a number"),
        ("echo 1.5", "not a number"),
        ("""echo '{"runing": 1}'""", "not a number"),
        ("echo no access >&2; exit 4", "sh exited with 4: no access"),
        ("echo 3; exit 1", "sh exited with 1: 3"),
        ("exit 1", "no output"),
        ("kill -9 $$", "sh exited with -9"),
    ],
)
def test_a_count_that_fails_or_says_something_else_is_no_count(program, told):
    with pytest.raises(ReplicasUnavailable, match=told) as error:
        _fleet(count=program).count(now=NOON)

    assert str(error.value).startswith("fleet mail: ")


def test_scaling_that_fails_is_told():
    with pytest.raises(ReplicasUnavailable, match="exited with 7: quota"):
        _fleet(scale="echo quota >&2; exit 7").scale_to(1, now=NOON)


def test_a_program_that_takes_too_long_is_killed_with_all_it_has_started(tmp_path: Path):
    pid = tmp_path / "pid"
    program = f"sleep 600 & echo $! > {pid}; wait"

    with pytest.raises(ReplicasUnavailable, match="longer than 5000 ms and was killed"):
        _fleet(count=program, timeout_ms=5_000).count(now=NOON)

    eventually(lambda: birth(int(pid.read_text())) is None)


def test_what_a_command_leaves_running_is_neither_waited_for_nor_ended(tmp_path: Path):
    pid = tmp_path / "pid"
    fleet = _fleet(scale=f"sleep 600 & echo $! > {pid}")

    fleet.scale_to(1, now=NOON)

    os.kill(int(pid.read_text()), signal.SIGKILL)  # it is there to be killed


def test_a_program_that_is_not_there_is_told():
    fleet = CommandReplicas("mail", Command(scale=("true",), count=("/nowhere/count",)))

    with pytest.raises(ReplicasUnavailable, match="/nowhere/count cannot be started"):
        fleet.count(now=NOON)


@pytest.mark.parametrize(
    ("scale", "count", "told"),
    [
        (("x", "{want}"), ("y",), r"mail.replicas.scale: {want} is not known; use {fleet}, "),
        (("x",), ("y", "{wanted}"), r"count: {wanted} is not known; use {fleet}$"),
    ],
)
def test_a_template_that_asks_for_what_nobody_knows_is_refused_at_once(scale, count, told):
    with pytest.raises(FleetsRefused, match=told):
        CommandReplicas("mail", Command(scale=scale, count=count))
