"""`penstock send`: one message from the command line or a file, or one per line of the input."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from penstock.api.messages import Draft, SendResult, Sent
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.bodies import InputLines, body_of, read_input
from penstock.edge.cli.kit.command import ServerCommand, argument, flag
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.progress import progress
from penstock.edge.cli.kit.record_flags import RecordFlags

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote

BATCH = 100
_OPTIONS = RecordFlags(
    Draft,
    "kind entity_id tags:tag group priority delay_ms due_at dedup_key dedup_until:unique-until "
    "expires_in_ms max_attempts timeout_ms:attempt-timeout retries_timeouts:retry-timeouts route "
    "trace attributes:attribute",
    texts={
        "expires_in_ms": "cancel it if it is unclaimed after this time",
        "retries_timeouts": "retry an attempt that timed out; default: the message is dead",
    },
)


def _run(server: Remote, args: Namespace, out: Output) -> int | None:
    if args.json_body and args.text:
        raise UsageError("--json-body and --text exclude each other")
    if args.file and args.body != "-":
        raise UsageError("give a body or --file, not both")
    if args.lines:
        return _send_lines(server, args, out)
    text = args.body if args.body != "-" else read_input(args.file)
    body = body_of(text, as_json=args.json_body, as_text=args.text)
    sent = server.send(args.queue, body, **_OPTIONS.values(args))
    out.result(sent, f"{sent.id}{' (duplicate)' if sent.is_duplicate else ''}")
    return None


def _send_lines(server: Remote, args: Namespace, out: Output) -> int:
    if args.dedup_key is not None:
        raise UsageError("--dedup-key is for one message, --lines sends many")
    if args.body != "-":
        raise UsageError("--lines reads from --file or standard input")
    if args.batch < 1:
        raise UsageError("--batch must be at least 1")
    lines = InputLines(args.file)
    sent = refused = 0
    with progress(f"Sending to {args.queue}") as advance:
        for drafts in _batches(lines, args):
            for result in server.send_batch(args.queue, drafts):
                is_sent = _show_result(result, out)
                sent, refused = sent + is_sent, refused + (not is_sent)
            advance(lines.done, lines.total)
    if not out.json:
        out.line(f"{sent} sent" + (f", {refused} refused" if refused else ""))
    return exits.REFUSED if refused else exits.OK


def _batches(lines: InputLines, args: Namespace) -> Iterator[list[Draft]]:
    options = _OPTIONS.values(args)
    drafts = (
        Draft(body_of(line, as_json=args.json_body, as_text=args.text), **options) for line in lines
    )
    while batch := list(islice(drafts, args.batch)):
        yield batch


def _show_result(result: SendResult, out: Output) -> bool:
    if not isinstance(result, Sent):
        exits.report(result, result.code)
        return False
    if out.json:
        out.record(result)
    return True


COMMANDS = {
    "send": ServerCommand(
        _run,
        argument("QUEUE", "name of the queue"),
        argument("BODY", "the body; if it is - or missing, standard input", nargs="?", default="-"),
        flag("--json-body", "the body is JSON; reject it if it is not"),
        flag("--text", "the body is text, even if it looks like JSON"),
        flag("--file", "read the body from a file", value="FILE"),
        flag("--lines", "send every line of the input as a message of its own"),
        flag("--batch", "with --lines: messages per request", type=int, default=BATCH),
        _OPTIONS.add,
        more="Prints the id of the message once it is on disk. A body that is valid JSON is sent "
        "as JSON, any other as text; --json-body and --text decide it explicitly.",
        examples=(
            """penstock send mail '{"to": "ada@example.org"}' --kind welcome""",
            "penstock send reports 'monthly' --delay 2h --dedup-key 2030-01",
            "penstock send reports 'now' --dedup-key report --unique-until ended",
            "penstock send mail --lines --file addresses.jsonl",
            "date | penstock send log --text",
        ),
    )
}
