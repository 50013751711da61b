"""`penstock routes`: the routes of deliveries."""

from __future__ import annotations

from argparse import Namespace

import msgspec

from penstock.api.deliveries import Route
from penstock.domain.duration import duration_text
from penstock.domain.errors import InvalidRequest
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.bodies import read_input
from penstock.edge.cli.kit.flags import remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command

COLUMNS = ("pattern", "url", "methods", "timeout", "concurrency", "signed", "circuit")


def _configure_set(parser: Parser) -> None:
    parser.argument("FILE", "JSON file: an object of patterns and rules; - is standard input")
    server_flags(parser)


def _configure_match(parser: Parser) -> None:
    parser.argument("URI", "path and query of a delivery")
    server_flags(parser)


def _list(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        return out.records(server.routes.list(), COLUMNS, _row)


def _set(args: Namespace, out: Output) -> int:
    rules = _rules(args.file)
    with remote(args) as server:
        return out.records(server.routes.put(rules), COLUMNS, _row)


def _match(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        found = server.routes.match(args.uri)
    if out.json:
        out.record(found)
    else:
        out.fields([("target", found.target), *zip(COLUMNS, _row(found.route), strict=True)])
    return exits.OK


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
    "routes": Command(
        _list,
        server_flags,
        more="A delivery takes the first route whose pattern matches its whole URI.",
        examples=("penstock routes", "penstock routes --json"),
    ),
    "routes set": Command(
        _set,
        _configure_set,
        more="Replaces all routes, or none if one of them is invalid. Circuits of patterns that no "
        "longer exist are closed and removed.",
        examples=("penstock routes set rules.json", "penstock routes set - < rules.json"),
    ),
    "routes match": Command(
        _match, _configure_match, examples=("penstock routes match /shop/orders/17",)
    ),
}
