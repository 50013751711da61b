"""Create a `Penstock` for commands that use a server or, without one, open a store."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import server_flags
from penstock.edge.cli.kit.parser import Parser

if TYPE_CHECKING:
    from penstock.client.app import Penstock


def app_flags(parser: Parser) -> None:
    parser.flag(
        "--store",
        value="URL",
        text="sqlite:///path or postgresql://…: open this store instead of asking a server",
        env="-",
        reads_env=False,
    )
    server_flags(parser)


def open_app(args: Namespace) -> Penstock:
    from penstock.client.app import Penstock
    from penstock.settings.values import Settings, StoreSettings

    if args.store is None:
        return Penstock(args.server, key=args.key)
    path = Settings(store=StoreSettings(url=args.store)).sqlite_path
    if path is not None and not path.exists():
        # Opening it would create it, and a mistyped path would look like an empty store.
        raise UsageError(f"store {path} does not exist")
    return Penstock(args.store)
