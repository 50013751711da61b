"""What holds for every command: help, exit codes, errors, the environment."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

import pytest

from penstock import __version__
from penstock.domain.errors import all_errors
from penstock.edge.cli.kit import exits
from penstock.edge.cli.registry import ENTRIES, env_names, load, parser_of
from penstock.settings.catalogue import catalogue
from tests.edge.api import Api
from tests.edge.process import ROOT

EVERY = pytest.mark.parametrize("name", list(ENTRIES))
# Read by the loader of settings, or not at all: --set has a variable per key.
NOT_BY_NAME = {
    *("--config", "--data", "--store", "--host", "--port", "--set", "--help"),
    *("--definitions", "--fleets", "--lake", "--processes"),
}
OF_SETTINGS = {("sql", "--limit"), ("sql", "--memory"), ("sql", "--timeout")}
# A worker does not load settings.
BY_NAME_ALL_THE_SAME = {("worker", "--store"), ("worker", "--processes")}


@EVERY
def test_every_command_has_help_with_an_example_of_itself(run, name):
    ran = run(*name.split(), "--help")

    assert ran.code == 0
    assert ran.err == ""
    assert ran.out.startswith(f"Usage: penstock {name}")
    assert f"  penstock {name}" in ran.out
    assert max(len(line) for line in ran.out.splitlines()) <= 100


@EVERY
def test_every_flag_of_every_command_has_a_variable_that_the_help_names(name):
    parser = parser_of(name, load(name))
    help_text = parser.format_help()

    named = [action.option_strings[-1] for action in parser._actions if action.option_strings]
    flags = [
        flag
        for flag in named
        if (flag not in NOT_BY_NAME and (name, flag) not in OF_SETTINGS)
        or (name, flag) in BY_NAME_ALL_THE_SAME
    ]

    assert len(parser.env_names) == len(flags)
    for variable in parser.env_names:
        assert f"[{variable}]" in " ".join(help_text.split())


def test_no_two_flags_of_different_meaning_share_a_variable():
    settings = {setting.env for setting in catalogue().values()}

    assert not settings & env_names()


def test_help_lists_every_command(run):
    for words in ([], ["--help"], ["help"]):
        ran = run(*words)

        assert all(f"  {name} " in ran.out for name in ENTRIES)
        assert ran.code == (0 if words else 2)


def test_help_is_a_command_and_a_flag(run):
    assert run("help", "queues", "create").out == run("queues", "create", "--help").out


def test_the_version_is_shown(run):
    assert run("--version").out == f"penstock {__version__}\n"
    assert run("version", "--json").record["penstock"] == __version__
    assert __version__ in run("version").out


@pytest.mark.parametrize(
    "words", [["srve"], ["serve", "--prot", "1"], ["send"], ["claim", "q", "--wait", "soon"]]
)
def test_an_invalid_command_line_is_a_usage_error(run, words):
    ran = run(*words)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("penstock: ")
    assert ran.err.endswith(" (usage)\n")


def test_a_mistyped_command_gets_a_hint(run):
    assert "did you mean 'serve'" in run("srve").err


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("queues shw", "unexpected argument 'shw'; did you mean 'show'?"),
        ("queues --lable team=a", "unknown flag --lable; did you mean '--label'?"),
        ("circuits set --min-queue-sample-count 3", "unknown flag --min-queue-sample-count;"),
        ("claim q --wiat=3", "unknown flag --wiat; did you mean '--wait'?"),
        ("queues --timeout 0s", "'0s' is too short; use a duration such as 30s"),
        ("history --from yesterday", "'yesterday' is not an instant such as 2031-01-31"),
    ],
)
def test_an_error_names_the_wrong_word_and_the_remedy(run, command, text):
    ran = run(*command.split())

    assert (ran.code, ran.out) == (2, "")
    assert text in ran.err
    assert len(ran.err.splitlines()) == 1


def test_flags_cannot_be_abbreviated(run):
    assert run("queues", "--pre", "x").code == 2


def test_an_unreachable_server_has_its_own_exit_code(run):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    ran = run("queues", "--server", f"http://127.0.0.1:{port}")

    assert ran.code == 3
    assert ran.err.endswith("(unreachable)\n")


def test_a_host_without_an_address_is_reported_with_the_form_of_a_url(run):
    ran = run("queues", "--server", "nonsense.invalid")

    assert ran.code == 3
    assert ran.err.startswith("penstock: no answer from nonsense.invalid: ")
    assert "the URL of a server looks like http://" in ran.err


def test_an_unreachable_store_has_its_own_exit_code(run):
    ran = run("keys", "--store", "postgresql://user@127.0.0.1:1/nothing")

    assert ran.code == 3
    assert ran.err.endswith("(store_unavailable)\n")


@pytest.mark.parametrize("kind", all_errors())
def test_every_error_has_an_exit_code(kind):
    assert exits.exit_code(kind.__new__(kind)) in exits.TABLE


def test_a_port_in_use_is_reported_without_a_traceback(run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = run("serve", "--port", taken.getsockname()[1], "--data", "data")

    assert ran.code == 1
    assert "address already in use; choose another port with --port" in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize("command", ["serve", "keys", "migrate"])
def test_a_folder_that_cannot_be_created_is_reported_without_a_traceback(run, command, tmp_path):
    (tmp_path / "file").touch()

    ran = run(command, "--data", tmp_path / "file" / "data")

    assert ran.code == 1
    assert len(ran.err.splitlines()) == 1


@pytest.mark.parametrize(
    "words",
    [
        "keys",
        "keys create --name me --role read",
        "keys aws 5d0c3a91fe",
        "keys revoke 5d0c3a91fe",
        "archive status",
        "archive run",
        "archive snapshot",
        "backup copy.db",
        "jobs --store sqlite:///data/penstock.db",
        "recurring --store sqlite:///data/penstock.db",
    ],
)
def test_a_command_that_needs_a_store_creates_none(run, words, tmp_path):
    ran = run(*words.split())

    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("penstock: there is no store at data/penstock.db")
    assert list(tmp_path.iterdir()) == []


def test_a_missing_certificate_is_reported_by_its_name(run):
    flags = ("--set", "server.tls_cert=no.pem", "--set", "server.tls_key=no.key")

    ran = run("serve", "--data", "data", *flags)

    assert ran == (1, "", "penstock: no.pem: No such file or directory (system)\n")


def test_an_error_is_one_line_with_its_code(cli):
    ran = cli("claim", "no-such-queue")

    assert ran == (1, "", "penstock: queue 'no-such-queue' does not exist (queue_not_found)\n")


def test_a_flag_overrides_its_variable(cli, api: Api, monkeypatch):
    queue = api.make_queue()
    monkeypatch.setenv("PENSTOCK_SEND_KIND", "from-env")
    monkeypatch.setenv("PENSTOCK_SEND_DELAY", "1h")
    monkeypatch.setenv("PENSTOCK_SEND_TAG", "a,b")
    monkeypatch.setenv("PENSTOCK_SEND_TEXT", "yes")
    monkeypatch.setenv("PENSTOCK_JSON", "1")

    first = api.message(cli("send", queue, "1").record["id"])
    second = api.message(cli("send", queue, "1", "--kind", "k", "--tag", "c").record["id"])

    assert (first["kind"], first["tags"], first["state"]) == ("from-env", ["a", "b"], "waiting")
    assert first["body"] == "1"
    assert (second["kind"], second["tags"]) == ("k", ["c"])


@pytest.mark.parametrize(
    ("command", "name", "value"),
    [
        ("send q 1", "PENSTOCK_SEND_DELAY", "soon"),
        ("send q 1", "PENSTOCK_SEND_PRIORITY", "high"),
        ("send q 1", "PENSTOCK_JSON", "maybe"),
        ("messages q", "PENSTOCK_MESSAGES_STATE", "gone"),
    ],
)
def test_an_invalid_variable_is_reported_by_its_name(run, monkeypatch, command, name, value):
    monkeypatch.setenv(name, value)

    ran = run(*command.split())

    assert ran.code == 2
    assert name in ran.err


def test_a_variable_can_provide_a_required_flag(run, monkeypatch, tmp_path):
    assert run("keys", "create", "--data", tmp_path).code == 2
    run("migrate", "--data", tmp_path)
    monkeypatch.setenv("PENSTOCK_KEYS_CREATE_NAME", "me")
    monkeypatch.setenv("PENSTOCK_KEYS_CREATE_ROLE", "read")

    made = run("keys", "create", "--data", tmp_path, "--json").record

    assert (made["name"], made["roles"]) == ("me", ["read"])


def test_variables_of_flags_are_not_mistaken_for_settings(run, monkeypatch):
    monkeypatch.setenv("PENSTOCK_QUEUES_CREATE_LEASE", "1m")
    monkeypatch.setenv("PENSTOCK_HISTORY_LIMIT", "5")

    assert run("settings").code == 0
    monkeypatch.setenv("PENSTOCK_QUEUES_CREATE_LAESE", "1m")
    assert run("settings").code == 1


def test_the_list_of_commands_imports_none_of_them():
    code = (
        "import sys; from penstock.edge.cli.main import main; main(['--help']);"
        "print([m for m in sys.modules if m.split('.')[0] in ('apsw', 'rich', 'psycopg', 'http')"
        " or m.startswith(('penstock.store', 'penstock.wiring.broker'))], file=sys.stderr)"
    )

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)

    assert ran.stderr.strip() == "[]"


def test_python_dash_m_is_the_same_program():
    ran = subprocess.run(
        [sys.executable, "-m", "penstock", "--version"], capture_output=True, text=True, cwd=ROOT
    )

    assert ran.stdout == f"penstock {__version__}\n"


def test_ctrl_c_stops_a_command_quietly(cli, api: Api, server):
    queue = api.make_queue()
    command = [sys.executable, "-m", "penstock", "tail", queue, "--server", server.url]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        # Background jobs of a shell ignore SIGINT, and child processes inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as tail:
        assert tail.stdout is not None
        tail.stdout.readline()

        tail.send_signal(signal.SIGINT)
        _, errors = tail.communicate(timeout=20)

    assert (tail.returncode, errors) == (130, "")


def test_a_command_exits_quietly_when_its_reader_is_gone(cli, api: Api, server):
    queue = api.make_queue()
    read_end, write_end = os.pipe()
    os.close(read_end)

    command = [sys.executable, "-m", "penstock", "queues", "show", queue, "--server", server.url]
    ran = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    os.close(write_end)

    assert (ran.returncode, ran.stderr) == (0, "")
