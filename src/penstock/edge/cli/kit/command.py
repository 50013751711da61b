"""A command: its function, its arguments and flags, and what it asks."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import load_settings, remote, server_flags, store_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.view import View

if TYPE_CHECKING:
    from penstock.client.app import Penstock

Part = Callable[[Parser], None]  # adds arguments or flags


def argument(name: str, text: str, **options: Any) -> Part:
    """A positional argument; `options` as in `Parser.argument`."""
    return lambda parser: parser.argument(name, text, **options)


def flag(names: str, text: str, **options: Any) -> Part:
    """A flag; `options` as in `Parser.flag`."""
    return lambda parser: parser.flag(names, text, **options)


def limit_flag(default: int) -> Part:
    return flag("--limit", "maximum number of results", type=int, default=default)


def listing(view: View, find: Callable[[Any, Namespace], Iterable[object]]) -> Callable[..., None]:
    """The function of a command that lists records; `find` takes the client and the arguments."""
    return lambda client, args, out: out.records(find(client, args), view)


def showing(view: View, get: Callable[[Any, Namespace], object]) -> Callable[..., None]:
    """The function of a command that shows one record."""

    def show(client: Any, args: Namespace, out: Output) -> None:
        record = get(client, args)
        out.show(record, view.lines(record))

    return show


class Command:
    """`run` takes the arguments and the output; it returns an exit code, or None for OK."""

    def __init__(
        self,
        run: Callable[..., int | None],
        *parts: Part,
        more: str = "",  # details after the one-line summary
        examples: Sequence[str] = (),
    ) -> None:
        self._run = run
        self._parts = parts
        self.more = more
        self.examples = tuple(examples)

    def configure(self, parser: Parser) -> None:
        for part in self._parts:
            part(parser)

    def run(self, args: Namespace, out: Output) -> int:
        return self._call(args, out) or exits.OK

    def _call(self, args: Namespace, out: Output) -> int | None:
        return self._run(args, out)


class StoreCommand(Command):
    """Loads the settings: `run` takes them, the arguments and the output."""

    def configure(self, parser: Parser) -> None:
        super().configure(parser)
        store_flags(parser)

    def _call(self, args: Namespace, out: Output) -> int | None:
        return self._run(load_settings(args).settings, args, out)


class ServerCommand(Command):
    """Asks a running server: `run` takes the client, the arguments and the output."""

    def configure(self, parser: Parser) -> None:
        super().configure(parser)
        server_flags(parser)

    def _call(self, args: Namespace, out: Output) -> int | None:
        with remote(args) as server:
            return self._run(server, args, out)


class AppCommand(Command):
    """Asks a server or opens a store: `run` takes a `Penstock`, the arguments and the output."""

    def configure(self, parser: Parser) -> None:
        super().configure(parser)
        parser.flag(
            "--store",
            "sqlite:///path, postgresql://… or mysql://…: open this store instead of asking "
            "a server",
            value="URL",
            env="-",
            reads_env=False,
        )
        server_flags(parser)

    def _call(self, args: Namespace, out: Output) -> int | None:
        with _open_app(args) as app:
            return self._run(app, args, out)


def _open_app(args: Namespace) -> Penstock:
    from penstock.client.app import Penstock
    from penstock.settings.values import Settings, StoreSettings
    from penstock.wiring.broker import require_store

    if args.store is None:
        return Penstock(args.server, key=args.key)
    # Opening a missing file would create it, and a mistyped path would look like an empty store.
    require_store(Settings(store=StoreSettings(url=args.store)))
    return Penstock(args.store)
