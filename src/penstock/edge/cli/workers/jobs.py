"""`penstock jobs`: list, show and change jobs of a server or a store."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from penstock.api.messages import Acted, Message
from penstock.domain.message.lifecycle import State
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.acts_by_id import DUE, REASON, act_command, check_due
from penstock.edge.cli.kit.command import AppCommand, argument, flag, limit_flag
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.output import Output, fields_of
from penstock.edge.cli.kit.step_tables import step_tables
from penstock.edge.cli.kit.view import View

if TYPE_CHECKING:
    from penstock.client.app import Penstock

_ID = argument("ID", "id of the job")


def _list(app: Penstock, args: Namespace, out: Output) -> None:
    page = app.jobs.list(
        queue=args.queue,
        state=args.state,
        kind=args.kind,
        tag=args.tag,
        limit=args.limit,
        cursor=args.cursor,
    )
    if out.json:
        return out.record(page)
    out.table(*_JOB.table(page))
    if page.next is not None:
        out.line(f"more jobs match: --cursor {page.next!r}")
    return None


def _error(job: Message) -> str:
    lines = (job.last_error or job.reason or "").splitlines()
    return lines[0] if lines else ""


_JOB = View(
    "id kind queue state attempts sent_at due leased_by:worker error",
    due=lambda job: job.leased_until or job.due_at,
    error=_error,
)


def _show(app: Penstock, args: Namespace, out: Output) -> None:
    job = app.jobs.get(args.id)
    out.show(job, fields_of(job), *step_tables(app.jobs.steps(args.id)))


def _count(app: Penstock, args: Namespace, out: Output) -> None:
    counts = app.jobs.count(args.queue)
    states = [(name, getattr(counts, name)) for name in ("waiting", "ready", "leased", "dead")]
    totals = [(f"{name} in total", value) for name, value in fields_of(counts.totals)]
    out.show(counts, states + totals)


def _cancel(app: Penstock, job_id: str, args: Namespace) -> Acted:
    return app.jobs.cancel(job_id, reason=args.reason, is_running_ok=not args.unless_running)


def _reschedule(app: Penstock, job_id: str, args: Namespace) -> Acted:
    check_due(args)
    delay = None if args.delay is None else f"{args.delay}ms"
    return app.jobs.reschedule(job_id, due_at=args.due_at, delay=delay)


def _redrive(app: Penstock, args: Namespace, out: Output) -> None:
    if bool(args.id) is (args.queue is not None):
        raise UsageError("give either ids or --queue")
    if args.queue is not None:
        redriven = app.jobs.redrive(queue=args.queue)
    else:
        redriven = sum(app.jobs.redrive(job_id) for job_id in args.id)
    out.result({"redriven": redriven}, f"{redriven} redriven")


def _wait(app: Penstock, args: Namespace, out: Output) -> int:
    try:
        job = app.jobs.wait(args.id, timeout=getattr(args, "for"))
    except TimeoutError as error:
        exits.report(error, "timeout")
        return exits.NOTHING
    out.result(job, f"{job.id} {job.state}")
    return exits.OK if job.state is State.DONE else exits.REFUSED


def _result(app: Penstock, args: Namespace, out: Output) -> int:
    try:
        value = app.jobs.result(args.id, timeout=args.wait)
    except TimeoutError as error:
        exits.report(error, "timeout")
        return exits.NOTHING
    out.result({"id": args.id, "result": value}, msgspec.json.encode(value).decode())
    return exits.OK


_LIST = AppCommand(
    _list,
    flag("--queue", "only jobs of this queue", value="QUEUE"),
    flag(
        "--state",
        "only jobs in this state; default: all but done and cancelled",
        choices=[state.value for state in State],
    ),
    flag("--kind", "only jobs of this kind", value="KIND"),
    flag("--tag", "only jobs with this tag", value="TAG"),
    limit_flag(20),
    flag("--cursor", "`next` of the previous page", value="TEXT"),
    more="Done and cancelled jobs come from the history, newest first.",
    examples=(
        "penstock jobs list --store sqlite:///jobs.db",
        "penstock jobs list --queue mail --state dead --server http://broker:7654",
    ),
)

_act_command = partial(act_command, AppCommand, "jobs")

COMMANDS = {
    "jobs": _LIST,
    "jobs list": _LIST,
    "jobs show": AppCommand(
        _show,
        _ID,
        more="Finished jobs are shown as long as the history keeps them.",
        examples=("penstock jobs show 0190b5c2-… --store sqlite:///jobs.db",),
    ),
    "jobs count": AppCommand(
        _count,
        argument("QUEUE", "only jobs of this queue", nargs="?"),
        examples=("penstock jobs count mail --store postgresql://penstock@db/penstock",),
    ),
    "jobs cancel": _act_command(
        _cancel,
        "penstock jobs cancel 0190b5c2-… --reason 'sent by mistake'",
        REASON,
        flag("--unless-running", "do not cancel running jobs"),
        more="A running job loses its lease; its worker stops it within seconds if it can.",
    ),
    "jobs reschedule": _act_command(
        _reschedule, "penstock jobs reschedule 0190b5c2-… --delay 2h", DUE
    ),
    "jobs redrive": AppCommand(
        _redrive,
        argument("ID", "ids of dead jobs", nargs="*"),
        flag("--queue", "all dead jobs of this queue", value="QUEUE"),
        examples=(
            "penstock jobs redrive 0190b5c2-…",
            "penstock jobs redrive --queue mail --store sqlite:///jobs.db",
        ),
    ),
    "jobs wait": AppCommand(
        _wait,
        _ID,
        flag("--for", "maximum time to wait; default: no limit", value="DURATION"),
        more="Exits with code 0 if the job is done, 1 if it is dead or cancelled, 4 if it has not "
        "ended.",
        examples=("penstock jobs wait 0190b5c2-… --for 5m",),
    ),
    "result": AppCommand(
        _result,
        _ID,
        flag("--wait", "maximum time to wait for the end", value="DURATION", default="0s"),
        more="Prints JSON; null for a job that keeps no result. Exits with code 1 if the job is "
        "dead or was cancelled, 4 if it has not ended.",
        examples=(
            "penstock result 0190b5c2-… --wait 30s",
            "penstock result 0190b5c2-… --store sqlite:///jobs.db",
        ),
    ),
}
