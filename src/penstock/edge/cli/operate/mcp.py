"""`penstock mcp`"""

from __future__ import annotations

from argparse import Namespace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from penstock.domain.errors import InvalidRequest
from penstock.domain.optional_parts import not_installed
from penstock.edge.cli.kit.command import ServerCommand, flag
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import number
from penstock.edge.cli.kit.output import Output

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote

_ACTS = ("redrive", "pause", "cancel")


def _run(server: Remote, args: Namespace, _: Output) -> None:
    if find_spec("mcp") is None:
        raise InvalidRequest(not_installed("the Model Context Protocol", "mcp"))
    from penstock.edge.mcp.server import build_server, run_http

    allowed = [name.strip() for name in args.allow.split(",") if name.strip()]
    if unknown := set(allowed) - set(_ACTS):
        raise UsageError(f"--allow takes {', '.join(_ACTS)}, not {', '.join(sorted(unknown))}")
    tools = build_server(server, allowed=dict.fromkeys(allowed))
    if args.http is None:
        tools.run("stdio")
    else:
        run_http(tools, args.http)


COMMANDS = {
    "mcp": ServerCommand(
        _run,
        flag(
            "--allow",
            "comma-separated acts to offer: redrive, pause, cancel; default: only tools that read",
            value="ACTS",
            default="",
        ),
        flag(
            "--http",
            "serve HTTP at http://127.0.0.1:PORT/mcp instead of stdin and stdout",
            value="PORT",
            type=number(1, 65_535),
        ),
        more="For assistants that speak the Model Context Protocol. A key with the role `read` is\n"
        "enough for the tools that read.",
        examples=("penstock mcp", "penstock mcp --allow redrive,pause --http 7655"),
    )
}
