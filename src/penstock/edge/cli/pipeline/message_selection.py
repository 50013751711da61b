"""Shared parts of `penstock pipeline restore` and `resend`: filters, counts, results."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.domain.queue.rate import MAX_LIMIT
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import Part, flag
from penstock.edge.cli.kit.flags import number
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.throttle import Throttle
from penstock.edge.cli.kit.view import View

if TYPE_CHECKING:
    from penstock.pipeline.restore.rules import RestoreFilter, Row
    from penstock.services.lake import Restored

T = TypeVar("T")
_COUNTS = View("queue kind state messages without_body")
_AT_ONCE = 1_000  # ids that are looked up in one query
_MAX_REFUSALS = 5  # how many are shown with their reasons


def filter_flags(what: str) -> list[Part]:
    only = [
        flag(
            f"--{name}",
            f"only messages {place} this {name}; may be repeated",
            value=name.upper(),
            action="append",
            default=[],
        )
        for place, name in (("of", "queue"), ("with", "kind"), ("of", "group"), ("with", "tag"))
    ]
    return [
        *only,
        flag("--dry-run", f"only count the messages that would be {what}"),
        flag(
            "--rate",
            "messages per second at most; default: no limit",
            value="N",
            type=number(1, MAX_LIMIT),
        ),
    ]


def restore_filter(args: Namespace) -> RestoreFilter:
    from penstock.pipeline.restore.rules import RestoreFilter

    return RestoreFilter(
        queues=tuple(args.queue),
        kinds=tuple(args.kind),
        groups=tuple(args.group),
        tags=tuple(args.tag),
        states=tuple(getattr(args, "state", ())),
    )


def count(
    heads: Iterable[Row], known_of: Callable[[Sequence[Row]], set[str]] | None = None
) -> list[dict[str, Any]]:
    """Messages by queue, kind and state; `known_of` returns the ids that the target has."""
    messages: Counter[tuple[str, str | None, str]] = Counter()
    without_body, known = messages.copy(), messages.copy()
    for chunk in chunks(heads, _AT_ONCE):
        ids = set() if known_of is None else known_of(chunk)
        for row in chunk:
            key = row["queue"], row["kind"], row["state"]
            messages[key] += 1
            without_body[key] += not row["has_body"]
            known[key] += row["id"] in ids
    return [
        {
            "queue": key[0],
            "kind": key[1],
            "state": key[2],
            "messages": messages[key],
            "without_body": without_body[key],
        }
        | ({} if known_of is None else {"known": known[key]})
        for key in sorted(messages, key=lambda key: (key[0], key[1] or "", key[2]))
    ]


def show_counts(counts: list[dict[str, Any]], out: Output) -> None:
    has_known = any("known" in row for row in counts)
    out.records(counts, _COUNTS + View("known") if has_known else _COUNTS)


def report(done: Restored, out: Output, *, what: str, known: str) -> int:
    """`what` happened to the messages, and why the `known` ones were left out."""
    out.result(
        done,
        f"{done.restored} {what}, {done.known} {known}, {done.without_body} without a body, "
        f"{len(done.refused)} refused",
    )
    for message_id, why in done.refused[:_MAX_REFUSALS]:
        exits.note(f"{message_id}: {why}")
    return exits.REFUSED if done.refused or done.without_body else exits.OK


def chunks(rows: Iterable[T], most: int) -> Iterator[list[T]]:
    iterator = iter(rows)
    while chunk := list(islice(iterator, most)):
        yield chunk


def make_throttle(args: Namespace) -> Throttle:
    from penstock.wiring.broker import steady_clock

    return Throttle(args.rate, steady_clock())
