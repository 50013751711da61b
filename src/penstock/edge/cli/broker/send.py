"""`penstock send`: one message from the command line or a file, or one per line of the input."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from itertools import islice

from penstock.api.sends import Draft, SendOptions, SendResult, Sent
from penstock.domain.queue.queue import DedupUntil
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.bodies import Lines, body_of, whole
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import duration, instant, pair, remote, server_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.registry import Command

BATCH = 100


def configure(parser: Parser) -> None:
    parser.argument("QUEUE", "name of the queue")
    parser.argument(
        "BODY", "the body; - or nothing reads it from standard input", nargs="?", default="-"
    )
    parser.flag("--json-body", text="the body is JSON, and an error if it is not")
    parser.flag("--text", text="the body is text, even if it looks like JSON")
    parser.flag("--file", value="FILE", text="read the body from a file")
    parser.flag("--lines", text="send every line of the input as a message of its own")
    parser.flag(
        "--batch",
        value="N",
        text=f"with --lines: so many messages per request; default {BATCH}",
        type=int,
        default=BATCH,
    )
    parser.flag("--kind", value="KIND", text="which handler it is for")
    parser.flag("--entity-id", value="ID", text="what it is about")
    parser.flag("--tag", value="TAG", text="to find it by; up to two", action="append", default=[])
    parser.flag("--group", value="GROUP", text="handled one after the other within a group")
    parser.flag("--priority", value="N", text="smaller goes first; default 0", type=int, default=0)
    parser.flag("--delay", value="DURATION", text="claimable only after that", type=duration)
    parser.flag("--due-at", value="INSTANT", text="claimable only from then on", type=instant)
    parser.flag("--dedup-key", value="KEY", text="the same key again is the same message")
    parser.flag("--expires-in", value="DURATION", text="cancelled after that", type=duration)
    parser.flag("--max-attempts", value="N", text="instead of the queue's", type=int)
    parser.flag(
        "--attempt-timeout", value="DURATION", text="how long one attempt may take", type=duration
    )
    parser.flag("--retry-timeouts", text="an attempt that takes too long is tried again")
    parser.flag(
        "--unique-until",
        value="WHEN",
        text="the dedup key is taken until then: window (default), claimed or ended",
        type=DedupUntil,
        choices=list(DedupUntil),
    )
    parser.flag("--route", value="TEXT", text="where it belongs, for whoever reads it")
    parser.flag("--trace", value="TEXT", text="trace context that travels with it")
    parser.flag(
        "--attribute",
        value="NAME=VALUE",
        text="text beside the body; may be repeated",
        action="append",
        type=pair,
        default=[],
    )
    server_flags(parser)


def run(args: Namespace, out: Output) -> int:
    if args.json_body and args.text:
        raise UsageError("--json-body and --text exclude each other")
    if args.file and args.body != "-":
        raise UsageError("give a body or --file, not both")
    if args.lines:
        return _send_lines(args, out)
    text = args.body if args.body != "-" else whole(args.file)
    body = body_of(text, as_json=args.json_body, as_text=args.text)
    with remote(args) as server:
        sent = server.send(args.queue, body, **_options(args))
    if out.json:
        out.record(sent)
    else:
        out.line(f"{sent.id}{' (duplicate)' if sent.is_duplicate else ''}")
    return exits.OK


def _send_lines(args: Namespace, out: Output) -> int:
    if args.dedup_key is not None:
        raise UsageError("--dedup-key is for one message, --lines sends many")
    if args.body != "-":
        raise UsageError("--lines reads from --file or standard input")
    if args.batch < 1:
        raise UsageError("--batch is at least 1")
    lines = Lines(args.file)
    sent = refused = 0
    with remote(args) as server, progress(f"Sending to {args.queue}") as advance:
        for drafts in _batches(lines, args):
            for result in server.send_batch(args.queue, drafts):
                is_sent = _show_one(result, out)
                sent, refused = sent + is_sent, refused + (not is_sent)
            advance(lines.done, lines.total)
    if not out.json:
        out.line(f"{sent} sent" + (f", {refused} refused" if refused else ""))
    return exits.REFUSED if refused else exits.OK


def _batches(lines: Lines, args: Namespace) -> Iterator[list[Draft]]:
    options = _options(args)
    drafts = (
        Draft(body_of(line, as_json=args.json_body, as_text=args.text), **options) for line in lines
    )
    while batch := list(islice(drafts, args.batch)):
        yield batch


def _show_one(result: SendResult, out: Output) -> bool:
    if not isinstance(result, Sent):
        exits.tell(result, result.code)
        return False
    if out.json:
        out.record(result)
    return True


def _options(args: Namespace) -> SendOptions:
    return {
        "attributes": dict(args.attribute) or None,
        "kind": args.kind,
        "entity_id": args.entity_id,
        "tags": tuple(args.tag),
        "group": args.group,
        "priority": args.priority,
        "due_at": args.due_at,
        "delay_ms": args.delay,
        "dedup_key": args.dedup_key,
        "expires_in_ms": args.expires_in,
        "max_attempts": args.max_attempts,
        "trace": args.trace,
        "timeout_ms": args.attempt_timeout,
        "retries_timeouts": args.retry_timeouts,
        "dedup_until": args.unique_until,
        "route": args.route,
    }


COMMANDS = {
    "send": Command(
        run,
        configure,
        more="Prints the id of the message once it is on disk. A body that is JSON is sent as "
        "JSON, anything else as text; --json-body and --text leave no doubt.",
        examples=(
            """penstock send mail '{"to": "ada@example.org"}' --kind welcome""",
            "penstock send reports 'monthly' --delay 2h --dedup-key 2030-01",
            "penstock send reports 'now' --dedup-key report --unique-until ended",
            "penstock send mail --lines --file addresses.jsonl",
            "date | penstock send log --text",
        ),
    )
}
