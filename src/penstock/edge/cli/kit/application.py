"""For commands that work at a server and, without one, on a store: a `Penstock` behind both."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import server_flags
from penstock.edge.cli.kit.parser import Parser

if TYPE_CHECKING:
    from penstock.client.app import Penstock


def application_flags(parser: Parser) -> None:
    parser.flag(
        "--store",
        value="URL",
        text="sqlite:///path or postgresql://…: the store itself, in place of a server",
        env="-",
        reads_env=False,
    )
    server_flags(parser)


def application(args: Namespace) -> Penstock:
    from penstock.client.app import Penstock
    from penstock.settings.values import Settings, StoreSettings

    if args.store is None:
        return Penstock(args.server, key=args.key)
    path = Settings(store=StoreSettings(url=args.store)).sqlite_path
    if path is not None and not path.exists():
        # To open it would make an empty one, and a typo would look like a store without jobs.
        raise UsageError(f"there is no store at {path}")
    return Penstock(args.store)
