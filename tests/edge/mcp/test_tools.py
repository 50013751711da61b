"""An assistant reads a broker and, where it may, acts; through the official client library."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from penstock.client.remote.server import Remote
from penstock.domain.message.lease import Verb
from penstock.edge.cli.operate.mcp import COMMANDS
from penstock.edge.mcp.acting import ALLOWED
from penstock.edge.mcp.server import build_server
from tests.docs.snippets import read_table
from tests.edge.live import LiveServer
from tests.support.private_servers import free_port
from tests.support.waiting import eventually

Call = Callable[..., Any]


@pytest.fixture
def broker(server: LiveServer) -> Iterator[Remote]:
    with Remote(server.url) as broker:
        yield broker


@pytest.fixture
def queue(broker: Remote, request: pytest.FixtureRequest) -> str:
    """A queue with two dead messages, in which a third one is ready."""
    name = f"mcp-{request.node.name[:60].strip('[]').replace('[', '-')}"
    broker.queues.put(name, {"max_attempts": 1})
    for to in ("ada", "grace"):
        broker.send(name, {"to": to}, kind="mail")
        [claimed] = broker.claim(name)
        broker.act(claimed.receipt, Verb.FAIL, error="ValueError: no such address")
    broker.send(name, {"to": "joan"}, kind="mail")
    return name


@pytest.fixture
def call(broker: Remote) -> Call:
    return caller(broker, allowed=ALLOWED)


def caller(broker: Remote, **options: Any) -> Call:
    """Call a tool through the protocol; returns its document, or the text of its error."""
    tools = build_server(broker, **options)

    def call(name: str, **arguments: Any) -> Any:
        async def ask() -> Any:
            async with Client(tools) as client:
                return await client.call_tool(name, arguments)

        answer = asyncio.run(ask())
        return answer.content[0].text if answer.is_error else answer.structured_content

    return call


def names(tools: Any) -> set[str]:
    async def ask() -> set[str]:
        async with Client(tools) as client:
            return {tool.name for tool in (await client.list_tools()).tools}

    return asyncio.run(ask())


def counts(broker: Remote, queue: str) -> tuple[int, int]:
    """Ready and dead."""
    found = broker.queues.get(queue).counts
    return found.ready, found.dead


def test_without_leave_every_tool_only_reads(broker: Remote) -> None:
    async def ask() -> Any:
        async with Client(build_server(broker)) as client:
            return (await client.list_tools()).tools

    tools = asyncio.run(ask())

    assert all(tool.annotations.read_only_hint for tool in tools)
    assert not {tool.name for tool in tools} & {name for acts in ALLOWED.values() for name in acts}


@pytest.mark.parametrize("act", ALLOWED)
def test_an_act_is_offered_when_it_is_allowed(broker: Remote, act: str) -> None:
    more = names(build_server(broker, allowed=[act])) - names(build_server(broker))

    assert more == set(ALLOWED[act])


def test_an_unknown_act_is_refused_at_the_start(broker: Remote) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "penstock", "mcp", "--allow", "delete"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert ", ".join(ALLOWED) in done.stderr
    assert "mcp" in COMMANDS


def test_the_state_of_queues_and_messages_is_read(call: Call, queue: str) -> None:
    [ready] = call("browse_messages", queue=queue)["messages"]
    [group] = call("group_errors", queue=queue)["groups"]
    endings = call("search_history", queue=queue, outcome="dead")["endings"]
    shown = call("show_message", message_id=ready["id"])

    assert call("show_queue", queue=queue)["queue"]["counts"]["dead"] == 2
    assert shown["message"]["body"] == {"to": "joan"}
    assert (group["messages"], "no such address" in str(group)) == (2, True)
    assert isinstance(endings, list)
    assert queue in {one["name"] for one in call("list_queues", prefix=queue)["queues"]}


@pytest.mark.parametrize(
    ("tool", "field"),
    [
        ("overview", "stats"),
        ("list_circuits", "circuits"),
        ("list_fleets", "fleets"),
        ("list_workers", "workers"),
    ],
)
def test_the_whole_broker_is_read(call: Call, tool: str, field: str) -> None:
    assert field in call(tool)


def test_errors_have_their_code(call: Call) -> None:
    assert "queue_not_found" in call("show_queue", queue="no-such-queue")
    assert "message_not_found" in call("show_message", message_id="0" * 32)


@pytest.mark.parametrize("tool", ["redrive_queue", "redrive_error_group"])
def test_a_redrive_is_a_dry_run_first(call: Call, broker: Remote, queue: str, tool: str) -> None:
    [group] = call("group_errors", queue=queue)["groups"]
    target = {"queue": queue} if tool == "redrive_queue" else {"group_id": group["id"]}

    dry = call(tool, **target)["result"]
    before = counts(broker, queue)
    done = call(tool, **target, dry_run=False)["result"]

    assert (dry["matched"] >= 2, dry["changed"]) == (True, 0)
    assert before == (1, 2)
    assert done["changed"] >= 2
    assert counts(broker, queue) == (3, 0)


def test_cancels_are_dry_runs_first(call: Call, broker: Remote, queue: str) -> None:
    call("cancel_messages", queue=queue, reason="tidy", kind="mail")
    before = counts(broker, queue)
    call("cancel_messages", queue=queue, reason="tidy", kind="mail", dry_run=False)

    assert (before[0], counts(broker, queue)[0]) == (1, 0)


def test_one_message_is_cancelled_or_redriven(call: Call, broker: Remote, queue: str) -> None:
    [ready] = call("browse_messages", queue=queue)["messages"]
    [dead, _] = call("browse_messages", queue=queue, state="dead")["messages"]

    for tool, message in (("cancel_message", ready), ("redrive_message", dead)):
        reason = {"reason": "tidy"} if tool == "cancel_message" else {}
        assert message["id"] in str(call(tool, message_id=message["id"], **reason))
        call(tool, message_id=message["id"], dry_run=False, **reason)

    assert counts(broker, queue) == (1, 1)


def test_a_queue_is_paused_and_resumed(call: Call, broker: Remote, queue: str) -> None:
    states = []
    for tool in ("pause_queue", "resume_queue"):
        for dry_run in (True, False):
            call(tool, queue=queue, dry_run=dry_run)
            states.append(broker.queues.get(queue).is_paused)

    assert states == [False, True, True, False]


def test_the_command_speaks_on_stdin_and_stdout(server: LiveServer, queue: str) -> None:
    words = ["-m", "penstock", "mcp", "--server", server.url]
    command = StdioServerParameters(command=sys.executable, args=words, env=dict(os.environ))

    async def ask() -> Any:
        async with Client(command) as client:
            return await client.call_tool("show_queue", {"queue": queue})

    assert asyncio.run(ask()).structured_content["queue"]["name"] == queue


def test_the_command_serves_http(server: LiveServer, queue: str, tmp_path: Path) -> None:
    port = str(free_port())
    words = [sys.executable, "-m", "penstock", "mcp", "--server", server.url, "--http", port]

    async def ask() -> Any:
        async with Client(f"http://127.0.0.1:{port}/mcp") as client:
            return await client.call_tool("show_queue", {"queue": queue})

    def answer() -> Any:
        try:
            return asyncio.run(ask())
        except Exception:  # not listening yet: a group of errors
            return None

    with (tmp_path / "log").open("wb") as log, subprocess.Popen(words, stderr=log) as command:
        try:
            found = eventually(answer)
        finally:
            command.terminate()

    assert found.structured_content["queue"]["name"] == queue


def test_the_page_lists_every_tool(broker: Remote) -> None:
    table = read_table("tools", "docs/mcp.md")
    listed = {name for row in table for name in re.findall(r"`(\w+)`", row[0])}
    allowed = {name: row[2].strip("`") for row in table for name in re.findall(r"`(\w+)`", row[0])}

    assert listed == names(build_server(broker, allowed=ALLOWED))
    for act, tools in ALLOWED.items():
        assert {name for name, of in allowed.items() if of == act} == set(tools)
