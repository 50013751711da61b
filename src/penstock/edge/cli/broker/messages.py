"""`penstock messages`: list and show messages, and change them by hand."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable

from penstock.api.manual_acts import Buried, End
from penstock.api.messages import Acted, Message
from penstock.client.remote.server import Remote
from penstock.domain.message.lifecycle import State
from penstock.edge.cli.broker.messages_bulk import FILTERS
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.acts_by_id import DUE, REASON, act_on_each, check_due
from penstock.edge.cli.kit.flags import remote, server_flags
from penstock.edge.cli.kit.output import Output, display
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.kit.record_flags import RecordFlags
from penstock.edge.cli.registry import Command

STATES = [str(state) for state in (State.READY, State.WAITING, State.LEASED, State.DEAD)]
_BODY_CHARS = 60
_END = RecordFlags(End, "reason is_running_ok:running")


def _configure_list(parser: Parser) -> None:
    parser.argument("QUEUE", "name of the queue")
    parser.flag(
        "--state",
        value="STATE",
        text="ready (default), waiting, leased or dead",
        choices=STATES,
        default="ready",
    )
    FILTERS.add(parser)
    parser.flag("--limit", value="N", text="how many at most; default 20", type=int, default=20)
    server_flags(parser)


def _list(args: Namespace, out: Output) -> int:
    state, where = State(args.state), FILTERS.values(args)
    with remote(args) as server:
        page = server.messages.browse(args.queue, state=state, limit=args.limit, **where)
        messages = page.messages
        while page.next is not None and len(messages) < args.limit:
            # A page also ends after some thousands of rows, or when its bodies are large.
            left = args.limit - len(messages)
            page = server.messages.browse(
                args.queue, state=state, limit=left, cursor=page.next, **where
            )
            messages += page.messages
    out.records(messages, ("id", "kind", "sent", "due", "attempts", "body"), _row)
    if page.next is not None and not out.json:
        out.line("more messages match; raise --limit to see them")
    return exits.OK


def _row(message: Message) -> tuple[object, ...]:
    body = display(message.body)
    cut = body if len(body) <= _BODY_CHARS else body[: _BODY_CHARS - 1] + "…"
    due = message.leased_until or message.due_at
    return message.id, message.kind, message.sent_at, due, message.attempts, cut


def _configure_show(parser: Parser) -> None:
    parser.argument("ID", "id of the message")
    server_flags(parser)


def _show(args: Namespace, out: Output) -> int:
    with remote(args) as server:
        message = server.messages.get(args.id)
        past = server.history.of(args.id)
    if out.json:
        out.record({"message": message, "endings": past.endings, "attempts": past.attempts})
        return exits.OK
    out.fields((name, getattr(message, name)) for name in message.__struct_fields__)
    if past.attempts:
        out.line()
        out.table(
            ("lease", "outcome", "from", "to", "by", "error"),
            [
                (a.lease_no, a.outcome, a.leased_at, a.ended_at, a.leased_by, a.error)
                for a in past.attempts
            ],
        )
    return exits.OK


def _act_command(
    act: Callable[[Remote, str, Namespace], Acted | Buried],
    flags: RecordFlags | None,
    example: str,
) -> Command:
    def configure(parser: Parser) -> None:
        parser.argument("ID", "ids of the messages", nargs="+")
        if flags is not None:
            flags.add(parser)
        server_flags(parser)

    def run(args: Namespace, out: Output) -> int:
        with remote(args) as server:
            return act_on_each(args.id, lambda one: act(server, one, args), out)

    return Command(run, configure, (example,))


def _reschedule(server: Remote, message_id: str, args: Namespace) -> Acted:
    check_due(args)
    return server.messages.reschedule(message_id, args.due_at, delay_ms=args.delay)


COMMANDS = {
    "messages": Command(
        _list,
        _configure_list,
        more="Takes no lease and counts no attempt.",
        examples=("penstock messages mail", "penstock messages mail --state dead --limit 100"),
    ),
    "messages show": Command(
        _show,
        _configure_show,
        more="Finished messages are shown as long as the history keeps them.",
        examples=("penstock messages show 0190b5c2-…",),
    ),
    "messages complete": _act_command(
        lambda server, id_, args: server.messages.complete(id_, reason=args.reason),
        REASON,
        "penstock messages complete 0190b5c2-… --reason 'done by telephone'",
    ),
    "messages cancel": _act_command(
        lambda server, id_, args: server.messages.cancel(
            id_, reason=args.reason, is_running_ok=args.running
        ),
        _END,
        "penstock messages cancel 0190b5c2-… --reason 'sent by mistake'",
    ),
    "messages bury": _act_command(
        lambda server, id_, args: server.messages.bury(
            id_, reason=args.reason, is_running_ok=args.running
        ),
        _END,
        "penstock messages bury 0190b5c2-…",
    ),
    "messages redrive": _act_command(
        lambda server, id_, args: server.messages.redrive(id_),
        None,
        "penstock messages redrive 0190b5c2-…",
    ),
    "messages reschedule": _act_command(
        _reschedule,
        DUE,
        "penstock messages reschedule 0190b5c2-… --due-at 2030-01-01T09:00",
    ),
}
