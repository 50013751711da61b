"""The access table of docs/security.md: read, and regenerated from the code.

After a change of operations: python -m tests.edge.native.rights_table
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from pathlib import Path
from typing import NamedTuple

from penstock.domain.access.api_key import Role, Scope
from penstock.edge.routes import routes
from penstock.edge.server.router import HttpRoute
from penstock.edge.sns import protocol
from penstock.edge.sqs.api import SQS
from penstock.edge.sqs.wire.operations import RIGHTS
from penstock.runtime.waiting_claims import WaitingClaims
from penstock.wiring.broker import Broker, open_broker
from tests.edge.conftest import some_settings

PAGE = Path(__file__).parents[3] / "docs" / "security.md"
_ROW = re.compile(r"^\| `([A-Z]+) (\S+)` \| (\S+) \| (\S+) \|$", re.MULTILINE)
_HEAD = "| operation | role | queues |\n|---|---|---|\n"


class Right(NamedTuple):
    role: Role | None
    scope: Scope | None  # None: no key is required


Table = dict[tuple[str, str], Right]  # by method and path; for SQS and SNS by this and operation


def written() -> Table:
    return {
        (method, path): Right(
            None if role in ("any", "-") else Role(role), None if scope == "-" else Scope(scope)
        )
        for method, path, role, scope in _ROW.findall(PAGE.read_text())
    }


def of_code(broker: Broker) -> Table:
    found = {
        (route.method, route.path): Right(route.role, None if route.role is None else route.scope)
        for route in all_routes(broker)
        if route.name != SQS
    }
    found |= {("SNS", name): Right(*right) for name, right in protocol.RIGHTS.items()}
    return found | {("SQS", name): Right(*right) for name, right in RIGHTS.items()}


def all_routes(broker: Broker) -> list[HttpRoute]:
    async def ask() -> list[HttpRoute]:
        return routes(broker, WaitingClaims(broker.messages, broker.clock, most=1, poll_ms=1))

    return asyncio.run(ask())


def rendered(table: Table) -> str:
    rows = []
    for (method, path), right in sorted(table.items(), key=lambda item: item[0][::-1]):
        anyone = "any" if right.scope is not None else "-"
        role, scope = right.role or anyone, right.scope or "-"
        rows.append(f"| `{method} {path}` | {role} | {scope} |\n")
    return _HEAD + "".join(rows)


def rewrite() -> None:
    with tempfile.TemporaryDirectory() as folder:
        broker = open_broker(some_settings(Path(folder)))
        try:
            table = rendered(of_code(broker))
        finally:
            broker.close()
    text = PAGE.read_text()
    before, _, rest = text.partition(_HEAD)
    after = _ROW.sub("", rest).lstrip("\n")
    PAGE.write_text(f"{before}{table}\n{after}" if after else before + table)


if __name__ == "__main__":
    rewrite()
