"""`penstock routes`: the routes of deliveries."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

import msgspec

from penstock.api.deliveries import Route
from penstock.domain.duration import duration_text
from penstock.domain.errors import InvalidRequest
from penstock.edge.cli.kit.bodies import read_input
from penstock.edge.cli.kit.command import ServerCommand, argument
from penstock.edge.cli.kit.output import Output

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote

COLUMNS = ("pattern", "url", "methods", "timeout", "concurrency", "signed", "circuit")


def _list(server: Remote, args: Namespace, out: Output) -> None:
    out.records(server.routes.list(), COLUMNS, _row)


def _set(server: Remote, args: Namespace, out: Output) -> None:
    out.records(server.routes.put(_rules(args.file)), COLUMNS, _row)


def _match(server: Remote, args: Namespace, out: Output) -> None:
    found = server.routes.match(args.uri)
    out.show(found, [("target", found.target), *zip(COLUMNS, _row(found.route), strict=True)])


def _rules(file: str) -> msgspec.Raw:
    """The rules as written, because their order matters."""
    text = read_input(None if file == "-" else file)
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidRequest(
            f"{file} is not a JSON object of patterns and rules: {error}"
        ) from None
    return msgspec.Raw(text.encode())


def _row(route: Route) -> tuple[object, ...]:
    timeout = duration_text(route.timeout_ms)
    how = (route.methods, timeout, route.concurrency, route.is_signed)
    return route.pattern, route.url, *how, route.circuit


COMMANDS = {
    "routes": ServerCommand(
        _list,
        more="A delivery takes the first route whose pattern matches its whole URI.",
        examples=("penstock routes", "penstock routes --json"),
    ),
    "routes set": ServerCommand(
        _set,
        argument("FILE", "JSON file: an object of patterns and rules; - is standard input"),
        more="Replaces all routes, or none if one of them is invalid. Circuits of patterns that no "
        "longer exist are closed and removed.",
        examples=("penstock routes set rules.json", "penstock routes set - < rules.json"),
    ),
    "routes match": ServerCommand(
        _match,
        argument("URI", "path and query of a delivery"),
        examples=("penstock routes match /shop/orders/17",),
    ),
}
