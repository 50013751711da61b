"""Workers that the user's own commands count and scale."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from penstock.domain.errors import FleetsRefused, ReplicasUnavailable
from penstock.domain.scaling.fleet import CommandSpec
from penstock.domain.scaling.recommendation import Replicas
from penstock.outbound.replicas.command import CommandReplicas
from penstock.outbound.replicas.launch import start_time
from tests.clocks import NOON
from tests.support.waiting import eventually


def _fleet(*, scale: str = "true", count: str = "echo 3", timeout_ms: int = 60_000):
    spec = CommandSpec(scale=("sh", "-c", scale), count=("sh", "-c", count), timeout_ms=timeout_ms)
    return CommandReplicas("mail", spec)


def test_the_count_command_prints_the_number_of_workers():
    assert _fleet(count="echo ' 3 '").count(now=NOON) == Replicas(running=3, requested=3)


def test_a_count_command_may_print_more_than_a_number():
    expected = """echo '{"running": 2, "starting": 1, "requested": 5}'"""

    assert _fleet(count=expected).count(now=NOON) == Replicas(running=2, starting=1, requested=5)
    assert _fleet(count="""echo '{"running": 2}'""").count(now=NOON).requested == 2


def test_a_count_without_requested_uses_the_last_successful_scale():
    fleet = _fleet(count="echo 3", scale="true")
    fleet.scale_to(5, now=NOON)

    assert fleet.count(now=NOON) == Replicas(running=3, requested=5)


def test_a_scale_that_failed_requests_nothing():
    fleet = _fleet(count="echo 3", scale="exit 1")
    with pytest.raises(ReplicasUnavailable):
        fleet.scale_to(5, now=NOON)

    assert fleet.count(now=NOON) == Replicas(running=3, requested=3)


def test_the_scale_command_gets_the_current_and_the_wanted_count(tmp_path: Path):
    out = tmp_path / "out"
    spec = CommandSpec(
        scale=("sh", "-c", f'echo "$@" > {out}', "sh", "{fleet}", "{wanted}/{current}", "{change}"),
        count=("echo", "3"),
    )

    CommandReplicas("mail", spec).scale_to(1, now=NOON)

    assert out.read_text() == "mail 1/3 -2\n"


def test_arguments_are_passed_as_they_are_and_no_shell_reads_them(tmp_path: Path):
    out = tmp_path / "out"
    spec = CommandSpec(
        scale=("cp", "/dev/null", f"{out} $(touch x); {{fleet}}"), count=("echo", "0")
    )

    CommandReplicas("mail", spec).scale_to(1, now=NOON)

    assert [file.name for file in tmp_path.iterdir()] == ["out $(touch x); mail"]


@pytest.mark.parametrize(
    ("program", "expected"),
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
def test_a_count_command_that_fails_or_prints_something_else_is_an_error(program, expected):
    with pytest.raises(ReplicasUnavailable, match=expected) as error:
        _fleet(count=program).count(now=NOON)

    assert str(error.value).startswith("fleet mail: ")


def test_scaling_that_fails_is_an_error():
    with pytest.raises(ReplicasUnavailable, match="exited with 7: quota"):
        _fleet(scale="echo quota >&2; exit 7").scale_to(1, now=NOON)


def test_a_program_that_takes_too_long_is_killed_with_its_child_processes(tmp_path: Path):
    pid = tmp_path / "pid"
    program = f"sleep 600 & echo $! > {pid}; wait"

    with pytest.raises(ReplicasUnavailable, match="longer than 5000 ms and was killed"):
        _fleet(count=program, timeout_ms=5_000).count(now=NOON)

    eventually(lambda: start_time(int(pid.read_text())) is None)


def test_a_background_process_of_a_command_is_neither_awaited_nor_killed(tmp_path: Path):
    pid = tmp_path / "pid"
    fleet = _fleet(scale=f"sleep 600 & echo $! > {pid}")

    fleet.scale_to(1, now=NOON)

    os.kill(int(pid.read_text()), signal.SIGKILL)  # it is there to be killed


def test_a_program_that_does_not_exist_is_an_error():
    fleet = CommandReplicas("mail", CommandSpec(scale=("true",), count=("/nowhere/count",)))

    with pytest.raises(ReplicasUnavailable, match="/nowhere/count cannot be started"):
        fleet.count(now=NOON)


@pytest.mark.parametrize(
    ("scale", "count", "expected"),
    [
        (("x", "{want}"), ("y",), r"mail.replicas.scale: {want} is not known; use {fleet}, "),
        (("x",), ("y", "{wanted}"), r"count: {wanted} is not known; use {fleet}$"),
    ],
)
def test_a_command_with_an_unknown_field_is_refused_at_once(scale, count, expected):
    with pytest.raises(FleetsRefused, match=expected):
        CommandReplicas("mail", CommandSpec(scale=scale, count=count))
