"""What to do with the jobs of a crashed worker process.  Pure.

Any job that ran in the process itself may be the cause.  All of them are reported as crashed and
run in a sandbox from then on, which shows which one is to blame.  The others are given back.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from penstock.domain.message.lease import Verb
from penstock.worker.claimed_job import JobAct
from penstock.worker.processes.job_table import EntryState, TableEntry
from penstock.worker.processes.process_exit import ProcessExit


def acts_for(
    entries: Sequence[TableEntry],
    exit: ProcessExit,
    *,
    now: int,
    worker_id: str,
    overdue: Collection[str] = (),
    at_shutdown: bool = False,
) -> list[JobAct]:
    """`overdue`: receipts of the jobs it was killed for; `at_shutdown`: no job is to blame."""
    suspects = [entry for entry in entries if entry.state is EntryState.RUNNING]
    acts = []
    for entry in entries:
        if entry.receipt in overdue:
            text = "did not stop at its time limit, so its worker process was killed"
            acts.append(JobAct(receipt=entry.receipt, verb=Verb.TIME_OUT, text=text))
        elif entry.state is not EntryState.RUNNING or overdue or at_shutdown:
            acts.append(JobAct(receipt=entry.receipt, verb=Verb.RELEASE, delay_ms=0))
        else:
            text = _text(entry, exit, now, worker_id, beside=len(suspects) - 1)
            acts.append(JobAct(receipt=entry.receipt, verb=Verb.CRASH, text=text))
    return acts


def _text(entry: TableEntry, exit: ProcessExit, now: int, worker_id: str, *, beside: int) -> str:
    seconds = max(now - entry.started_at, 0) / 1000
    text = (
        f"its worker process died: {exit.text()}; worker {worker_id or '?'}, "
        f"handler {entry.kind}, {seconds:.1f} s running"
    )
    return f"{text}, beside {beside} other jobs" if beside else text
