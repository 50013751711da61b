"""`penstock jobs`: list, show and change jobs of a server or a store."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.api.messages import Acted, Message
from penstock.domain.message.lifecycle import State
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.acts_by_id import DUE, REASON, act_on_each, check_due
from penstock.edge.cli.kit.application import app_flags, open_app
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command

if TYPE_CHECKING:
    from penstock.client.app import Penstock

_COLUMNS = ("id", "kind", "queue", "state", "attempts", "sent", "due", "worker", "error")


def _configure_list(parser: Parser) -> None:
    parser.flag("--queue", value="QUEUE", text="only jobs of this queue")
    parser.flag(
        "--state",
        value="STATE",
        text="only jobs in this state; default: all but done and cancelled",
        choices=[state.value for state in State],
    )
    parser.flag("--kind", value="KIND", text="only jobs of this kind")
    parser.flag("--tag", value="TAG", text="only jobs with this tag")
    parser.flag("--limit", value="N", text="how many at most; default 20", type=int, default=20)
    parser.flag("--cursor", value="TEXT", text="`next` of the page before")
    app_flags(parser)


def _list(args: Namespace, out: Output) -> int:
    with open_app(args) as app:
        page = app.jobs.list(
            queue=args.queue,
            state=args.state,
            kind=args.kind,
            tag=args.tag,
            limit=args.limit,
            cursor=args.cursor,
        )
    if out.json:
        out.record(page)
        return exits.OK
    out.table(_COLUMNS, map(_row, page))
    if page.next is not None:
        out.line(f"more jobs match: --cursor {page.next!r}")
    return exits.OK


def _row(job: Message) -> tuple[object, ...]:
    due = job.leased_until or job.due_at
    lines = (job.last_error or job.reason or "").splitlines()
    error = lines[0] if lines else ""
    return (
        *(job.id, job.kind, job.queue, job.state, job.attempts),
        *(job.sent_at, due, job.leased_by, error),
    )


def _configure_one(parser: Parser) -> None:
    parser.argument("ID", "id of the job")
    app_flags(parser)


def _show(args: Namespace, out: Output) -> int:
    with open_app(args) as app:
        _show_one(app.jobs.get(args.id), out)
    return exits.OK


def _show_one(job: Message, out: Output) -> None:
    if out.json:
        out.record(job)
    else:
        out.fields((name, getattr(job, name)) for name in job.__struct_fields__)


def _configure_count(parser: Parser) -> None:
    parser.argument("QUEUE", "only jobs of this queue", nargs="?")
    app_flags(parser)


def _count(args: Namespace, out: Output) -> int:
    with open_app(args) as app:
        counts = app.jobs.count(args.queue)
    if out.json:
        out.record(counts)
        return exits.OK
    out.fields((name, getattr(counts, name)) for name in ("waiting", "ready", "leased", "dead"))
    totals = counts.totals
    out.fields((f"{name} in total", getattr(totals, name)) for name in totals.__struct_fields__)
    return exits.OK


def _act_command(
    act: Callable[[Penstock, str, Namespace], Acted],
    flags: Callable[[Parser], None],
    example: str,
    more: str = "",
) -> Command:
    def configure(parser: Parser) -> None:
        parser.argument("ID", "ids of the jobs", nargs="+")
        flags(parser)
        app_flags(parser)

    def run(args: Namespace, out: Output) -> int:
        with open_app(args) as app:
            return act_on_each(args.id, lambda one: act(app, one, args), out)

    return Command(run, configure, (example,), more)


def _cancel_flags(parser: Parser) -> None:
    REASON.add(parser)
    parser.flag("--unless-running", text="do not cancel running jobs")


def _cancel(app: Penstock, job_id: str, args: Namespace) -> Acted:
    return app.jobs.cancel(job_id, reason=args.reason, is_running_ok=not args.unless_running)


def _reschedule(app: Penstock, job_id: str, args: Namespace) -> Acted:
    check_due(args)
    delay = None if args.delay is None else f"{args.delay}ms"
    return app.jobs.reschedule(job_id, due_at=args.due_at, delay=delay)


def _configure_redrive(parser: Parser) -> None:
    parser.argument("ID", "ids of dead jobs", nargs="*")
    parser.flag("--queue", value="QUEUE", text="all dead jobs of this queue")
    app_flags(parser)


def _redrive(args: Namespace, out: Output) -> int:
    if bool(args.id) is (args.queue is not None):
        raise UsageError("give either ids or --queue")
    with open_app(args) as app:
        if args.queue is not None:
            redriven = app.jobs.redrive(queue=args.queue)
        else:
            redriven = sum(app.jobs.redrive(job_id) for job_id in args.id)
    return out.result({"redriven": redriven}, f"{redriven} redriven")


def _configure_wait(parser: Parser) -> None:
    parser.argument("ID", "id of the job")
    parser.flag("--for", value="DURATION", text="how long to wait at most; default: for ever")
    app_flags(parser)


def _wait(args: Namespace, out: Output) -> int:
    with open_app(args) as app:
        try:
            job = app.jobs.wait(args.id, timeout=getattr(args, "for"))
        except TimeoutError as error:
            exits.report(error, "timeout")
            return exits.NOTHING
    out.result(job, f"{job.id} {job.state}")
    return exits.OK if job.state is State.DONE else exits.REFUSED


_LIST = Command(
    _list,
    _configure_list,
    more="Done and cancelled jobs come from the history, newest first.",
    examples=(
        "penstock jobs list --store sqlite:///jobs.db",
        "penstock jobs list --queue mail --state dead --server http://broker:7654",
    ),
)

COMMANDS = {
    "jobs": _LIST,
    "jobs list": _LIST,
    "jobs show": Command(
        _show,
        _configure_one,
        more="Finished jobs are shown as long as the history keeps them.",
        examples=("penstock jobs show 0190b5c2-… --store sqlite:///jobs.db",),
    ),
    "jobs count": Command(
        _count,
        _configure_count,
        examples=("penstock jobs count mail --store postgresql://penstock@db/penstock",),
    ),
    "jobs cancel": _act_command(
        _cancel,
        _cancel_flags,
        "penstock jobs cancel 0190b5c2-… --reason 'sent by mistake'",
        more="A running job loses its lease; its worker stops it within seconds if it can.",
    ),
    "jobs reschedule": _act_command(
        _reschedule, DUE.add, "penstock jobs reschedule 0190b5c2-… --delay 2h"
    ),
    "jobs redrive": Command(
        _redrive,
        _configure_redrive,
        examples=(
            "penstock jobs redrive 0190b5c2-…",
            "penstock jobs redrive --queue mail --store sqlite:///jobs.db",
        ),
    ),
    "jobs wait": Command(
        _wait,
        _configure_wait,
        more="Exits with code 0 if the job is done, 1 if it is dead or cancelled, 4 if it has not "
        "ended.",
        examples=("penstock jobs wait 0190b5c2-… --for 5m",),
    ),
}
