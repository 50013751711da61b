"""`penstock messages`: list and show messages, and change them by hand."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import TYPE_CHECKING

from penstock.api.manual_acts import Bulk, End, Where
from penstock.api.messages import Acted
from penstock.domain.message.lifecycle import State
from penstock.domain.message.selection import BulkAct
from penstock.edge.cli.broker.message_logs import print_logs
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.acts_by_id import DUE, REASON, act_command, check_due
from penstock.edge.cli.kit.command import ServerCommand, argument, flag, limit_flag
from penstock.edge.cli.kit.confirmation import may_change, yes_flag
from penstock.edge.cli.kit.output import Output, cut, display, fields_of
from penstock.edge.cli.kit.record_flags import RecordFlags
from penstock.edge.cli.kit.step_tables import step_tables
from penstock.edge.cli.kit.view import View

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote

STATES = [str(state) for state in (State.READY, State.WAITING, State.LEASED, State.DEAD)]
FILTERS = RecordFlags(Where, "kind tag group entity_id sent_from sent_before")
_BULK = RecordFlags(Bulk, "reason due_at delay_ms is_running_ok:running is_dry_run:dry-run")
_END = RecordFlags(End, "reason is_running_ok:running")


_MESSAGE = View(
    "id kind sent_at due attempts body",
    due=lambda message: message.leased_until or message.due_at,
    body=lambda message: cut(display(message.body)),
)
_DEAD = View(
    "id kind sent_at attempts error body",
    error=lambda message: cut(message.error_line or message.reason or ""),
    body=lambda message: cut(display(message.body)),
)
_ATTEMPT = View("lease_no:lease outcome leased_at:from ended_at:to leased_by:by error_line:error")
_QUEUE = argument("QUEUE", "name of the queue")


def _list(server: Remote, args: Namespace, out: Output) -> None:
    state, where = State(args.state), FILTERS.values(args)
    page = server.messages.browse(args.queue, state=state, limit=args.limit, **where)
    messages = page.messages
    while page.next is not None and len(messages) < args.limit:
        # A page also ends after some thousands of rows, or when its bodies are large.
        left = args.limit - len(messages)
        page = server.messages.browse(
            args.queue, state=state, limit=left, cursor=page.next, **where
        )
        messages += page.messages
    out.records(messages, _DEAD if state is State.DEAD else _MESSAGE)
    if page.next is not None and not out.json:
        out.line("more messages match; raise --limit to see them")


def _show(server: Remote, args: Namespace, out: Output) -> None:
    if args.logs or args.follow:
        print_logs(server, args.id, out, follow=args.follow)
        return
    message = server.messages.get(args.id)
    past, durable = server.history.of(args.id), server.messages.steps(args.id)
    out.show(
        {
            "message": message,
            "endings": past.endings,
            "attempts": past.attempts,
            "steps": durable.steps,
            "waits": durable.waits,
        },
        fields_of(message),
        _ATTEMPT.table(past.attempts),
        *step_tables(durable),
    )


def _bulk(server: Remote, args: Namespace, out: Output) -> int:
    chosen = f"{args.state} messages of {args.queue}"
    if not args.dry_run and not may_change(args, lambda: f"{args.act} matching {chosen}?"):
        return exits.REFUSED
    done = server.messages.change_many(
        args.queue,
        BulkAct(args.act),
        where=Where(State(args.state), **FILTERS.values(args)),
        **_BULK.values(args),
    )
    text = f"{done.matched} messages match, {done.changed} changed, {done.refused} refused"
    out.result(done, f"{done.matched} messages match; none was changed" if args.dry_run else text)
    if done.is_cut and not out.json:
        out.line("more messages match; run the command again for the rest")
    return exits.OK


def _reschedule(server: Remote, message_id: str, args: Namespace) -> Acted:
    check_due(args)
    return server.messages.reschedule(message_id, args.due_at, delay_ms=args.delay)


_act_command = partial(act_command, ServerCommand, "messages")

COMMANDS = {
    "messages": ServerCommand(
        _list,
        _QUEUE,
        flag(
            "--state", "ready (default), waiting, leased or dead", choices=STATES, default="ready"
        ),
        FILTERS.add,
        limit_flag(20),
        more="Takes no lease and counts no attempt.",
        examples=("penstock messages mail", "penstock messages mail --state dead --limit 100"),
    ),
    "messages show": ServerCommand(
        _show,
        argument("ID", "id of the message"),
        flag("--logs", 'show what its attempts have logged instead (jobs with logs="keep")'),
        flag("--follow", "as --logs, and show new lines until the message has ended"),
        more="Shows its attempts and durable steps, too. Finished messages are shown as long as "
        "the history keeps them.",
        examples=(
            "penstock messages show 0190b5c2-…",
            "penstock messages show 0190b5c2-… --follow",
        ),
    ),
    "messages complete": _act_command(
        lambda server, id_, args: server.messages.complete(id_, reason=args.reason),
        "penstock messages complete 0190b5c2-… --reason 'done by telephone'",
        REASON,
    ),
    "messages cancel": _act_command(
        lambda server, id_, args: server.messages.cancel(id_, **_END.values(args)),
        "penstock messages cancel 0190b5c2-… --reason 'sent by mistake'",
        _END.add,
    ),
    "messages bury": _act_command(
        lambda server, id_, args: server.messages.bury(id_, **_END.values(args)),
        "penstock messages bury 0190b5c2-…",
        _END.add,
    ),
    "messages redrive": _act_command(
        lambda server, id_, args: server.messages.redrive(id_),
        "penstock messages redrive 0190b5c2-…",
    ),
    "messages reschedule": _act_command(
        _reschedule, "penstock messages reschedule 0190b5c2-… --due-at 2030-01-01T09:00", DUE
    ),
    "messages bulk": ServerCommand(
        _bulk,
        _QUEUE,
        argument(
            "ACT",
            "complete, cancel, bury, redrive or reschedule",
            choices=[str(act) for act in BulkAct],
        ),
        flag(
            "--state",
            "state of the messages: ready, waiting, dead, or leased (with --running)",
            choices=STATES,
            required=True,
        ),
        FILTERS.add,
        _BULK.add,
        yes_flag,
        more="Selects the messages that match at the start, at most 100,000, and then acts on "
        "them. On a terminal it asks for confirmation.",
        examples=(
            "penstock messages bulk mail cancel --state waiting --kind welcome --dry-run",
            "penstock messages bulk mail redrive --state dead --sent-from 2031-01-01",
        ),
    ),
}
