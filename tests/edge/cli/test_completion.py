"""`penstock completion`"""

from __future__ import annotations

import subprocess

import pytest

from penstock.edge.cli.registry import ENTRIES
from tests.support.programs import need

_COMPLETE = """
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _penstock
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def complete(run, tmp_path):
    """complete("queues", "sh"): what bash completes the last word to."""
    script = tmp_path / "penstock.bash"
    script.write_text(run("completion", "bash").out)

    def complete(*words: str) -> list[str]:
        command = ["bash", "-c", f"source {script}\n{_COMPLETE}", "bash", "penstock", *words]
        ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        assert ran.stderr == ""
        return ran.stdout.split()

    return complete


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["que"], ["queues"]),
        (["rec"], ["recurring", "receive"]),
        (["queues", "sh"], ["show"]),
        (["queues", "--pro"], ["--problem"]),
        (["queues", "show", "--ti"], ["--timeout"]),
        (["queues", "create", "mail", "--ordering", "g"], ["group"]),
        (["queues", "--state", "x"], []),
        (["receive", "q", "--wai"], ["--wait"]),
        (["completion", ""], ["bash", "zsh", "fish", "--json", "--help"]),
        (["no-such-command", ""], []),
    ],
)
def test_bash_completes_commands_flags_and_choices(complete, words, found):
    assert sorted(complete(*words)) == sorted(found)


def test_bash_completes_every_command(complete):
    first = {name.partition(" ")[0] for name in ENTRIES}

    assert first <= set(complete(""))
    for name in first:
        expected = {entry.partition(" ")[2] for entry in ENTRIES if entry.startswith(f"{name} ")}
        assert expected <= set(complete(name, "")), name


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_script_of_another_shell_is_valid(run, shell, tmp_path):
    script = run("completion", shell).out
    assert "dead_letters" in script

    file = tmp_path / "script"
    file.write_text(script)
    subprocess.run([need(shell), "-n", str(file)], check=True, timeout=60)


def test_another_shell_is_refused(run):
    assert run("completion", "tcsh").code == 2
