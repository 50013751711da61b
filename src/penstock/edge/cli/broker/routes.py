"""`penstock routes`: where deliveries go."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable

import msgspec

from penstock.api.routes import Route
from penstock.domain.duration import duration_text
from penstock.domain.errors import InvalidRequest
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.bodies import whole
from penstock.edge.cli.kit.flags import remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command

COLUMNS = ("pattern", "url", "methods", "timeout", "concurrency", "signed", "circuit")


def _configure_set(parser: Parser) -> None:
    parser.argument("FILE", "JSON: an object of patterns and rules; - reads standard input")
    server_flags(parser)


def _configure_match(parser: Parser) -> None:
    parser.argument("URI", "path and query of a delivery")
    server_flags(parser)


def _list(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        return _shown(server.routes.list(), out)


def _set(args: Namespace, out: Output) -> int:
    rules = _rules(args.file)
    with remote(args) as server:
        return _shown(server.routes.put(rules), out)


def _match(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        found = server.routes.match(args.uri)
    if out.json:
        out.record(found)
    else:
        out.fields([("target", found.target), *zip(COLUMNS, _row(found.route), strict=True)])
    return exits.OK


def _rules(file: str) -> msgspec.Raw:
    """The text as it is: order matters."""
    text = whole(None if file == "-" else file)
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidRequest(f"{file} holds no object of patterns and rules: {error}") from None
    return msgspec.Raw(text.encode())


def _shown(routes: Iterable[Route], out: Output) -> int:
    if out.json:
        for route in routes:
            out.record(route)
    else:
        out.table(COLUMNS, map(_row, routes))
    return exits.OK


def _row(route: Route) -> tuple[object, ...]:
    timeout = duration_text(route.timeout_ms)
    how = (route.methods, timeout, route.concurrency, route.is_signed)
    return route.pattern, route.url, *how, route.circuit


COMMANDS = {
    "routes": Command(
        _list,
        server_flags,
        more="The first route whose pattern fits the whole URI of a delivery takes it.",
        examples=("penstock routes", "penstock routes --json"),
    ),
    "routes set": Command(
        _set,
        _configure_set,
        more="All of them, or none if there is a mistake in one. Circuits of patterns that are "
        "gone are closed and removed.",
        examples=("penstock routes set rules.json", "penstock routes set - < rules.json"),
    ),
    "routes match": Command(
        _match, _configure_match, examples=("penstock routes match /shop/orders/17",)
    ),
}
