"""`penstock jobs`: looking at jobs and steering them, at a server or in a store without one."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.api.messages import Acted, Message
from penstock.domain.message.lifecycle import State
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.acts_by_id import act_on_each, check_due, due_flags, reason_flag
from penstock.edge.cli.kit.application import application, application_flags
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command

if TYPE_CHECKING:
    from penstock.client.app import Penstock

_COLUMNS = ("id", "kind", "queue", "state", "attempts", "sent", "due", "worker", "error")


def _configure_list(parser: Parser) -> None:
    parser.flag("--queue", value="QUEUE", text="only of this queue")
    parser.flag(
        "--state",
        value="STATE",
        text="only in this state; default all but done and cancelled",
        choices=[state.value for state in State],
    )
    parser.flag("--kind", value="KIND", text="only of this kind")
    parser.flag("--tag", value="TAG", text="only with this tag")
    parser.flag("--limit", value="N", text="how many; default 20", type=int, default=20)
    parser.flag("--cursor", value="TEXT", text="continue after a page (its `next`)")
    application_flags(parser)


def _list(args: Namespace, out: Output) -> int:
    with application(args) as app:
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
        out.line(f"there are more: --cursor {page.next!r}")
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
    application_flags(parser)


def _show(args: Namespace, out: Output) -> int:
    with application(args) as app:
        _show_one(app.jobs.get(args.id), out)
    return exits.OK


def _show_one(job: Message, out: Output) -> None:
    if out.json:
        out.record(job)
    else:
        out.fields((name, getattr(job, name)) for name in job.__struct_fields__)


def _configure_count(parser: Parser) -> None:
    parser.argument("QUEUE", "of this queue only", nargs="?")
    application_flags(parser)


def _count(args: Namespace, out: Output) -> int:
    with application(args) as app:
        counts = app.jobs.count(args.queue)
    if out.json:
        out.record(counts)
        return exits.OK
    out.fields((name, getattr(counts, name)) for name in ("waiting", "ready", "leased", "dead"))
    totals = counts.totals
    out.fields((f"{name} in total", getattr(totals, name)) for name in totals.__struct_fields__)
    return exits.OK


def _acting(
    act: Callable[[Penstock, str, Namespace], Acted],
    flags: Callable[[Parser], None],
    example: str,
    more: str = "",
) -> Command:
    def configure(parser: Parser) -> None:
        parser.argument("ID", "ids of the jobs", nargs="+")
        flags(parser)
        application_flags(parser)

    def run(args: Namespace, out: Output) -> int:
        with application(args) as app:
            return act_on_each(args.id, lambda one: act(app, one, args), out)

    return Command(run, configure, (example,), more)


def _cancel_flags(parser: Parser) -> None:
    reason_flag(parser)
    parser.flag("--unless-running", text="refuse jobs that are running")


def _cancel(app: Penstock, job_id: str, args: Namespace) -> Acted:
    return app.jobs.cancel(job_id, reason=args.reason, is_running_ok=not args.unless_running)


def _reschedule(app: Penstock, job_id: str, args: Namespace) -> Acted:
    check_due(args)
    delay = None if args.delay is None else f"{args.delay}ms"
    return app.jobs.reschedule(job_id, due_at=args.due_at, delay=delay)


def _configure_redrive(parser: Parser) -> None:
    parser.argument("ID", "ids of dead jobs", nargs="*")
    parser.flag("--queue", value="QUEUE", text="all dead jobs of this queue")
    application_flags(parser)


def _redrive(args: Namespace, out: Output) -> int:
    if bool(args.id) is (args.queue is not None):
        raise UsageError("give ids or --queue, and not both")
    with application(args) as app:
        if args.queue is not None:
            redriven = app.jobs.redrive(queue=args.queue)
        else:
            redriven = sum(app.jobs.redrive(job_id) for job_id in args.id)
    if out.json:
        out.record({"redriven": redriven})
    else:
        out.line(f"{redriven} redriven")
    return exits.OK


def _configure_wait(parser: Parser) -> None:
    parser.argument("ID", "id of the job")
    parser.flag("--for", value="DURATION", text="at most that long; default for ever")
    application_flags(parser)


def _wait(args: Namespace, out: Output) -> int:
    with application(args) as app:
        try:
            job = app.jobs.wait(args.id, timeout=getattr(args, "for"))
        except TimeoutError as error:
            exits.tell(error, "timeout")
            return exits.NOTHING
    if out.json:
        out.record(job)
    else:
        out.line(f"{job.id} {job.state}")
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
        more="Also of finished jobs, as long as the history keeps them.",
        examples=("penstock jobs show 0190b5c2-… --store sqlite:///jobs.db",),
    ),
    "jobs count": Command(
        _count,
        _configure_count,
        examples=("penstock jobs count mail --store postgresql://penstock@db/penstock",),
    ),
    "jobs cancel": _acting(
        _cancel,
        _cancel_flags,
        "penstock jobs cancel 0190b5c2-… --reason 'sent by mistake'",
        more="A running job is taken from its worker, which stops it within seconds if it can.",
    ),
    "jobs reschedule": _acting(
        _reschedule, due_flags, "penstock jobs reschedule 0190b5c2-… --delay 2h"
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
        more="Exits with 0 if it is done, 1 if it is dead or cancelled, 4 if it has not ended.",
        examples=("penstock jobs wait 0190b5c2-… --for 5m",),
    ),
}
