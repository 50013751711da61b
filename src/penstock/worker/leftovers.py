"""What becomes of the jobs that a dead worker process held.  Pure.

Those that ran in the process itself may be the reason, and cannot be told apart: each is said to
have crashed, and from then on runs in a sandbox, where it is known.  All others are innocent.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from penstock.domain.message.lease import Verb
from penstock.ports.work import WorkAct
from penstock.worker.job_table import Entry, Noted
from penstock.worker.process_exit import Death


def acts_for(
    entries: Sequence[Entry],
    death: Death,
    *,
    now: int,
    worker_id: str,
    overdue: Collection[str] = (),
    is_our_doing: bool = False,
) -> list[WorkAct]:
    """`overdue`: receipts of those it was killed for; `is_our_doing`: nobody is to blame."""
    suspects = [entry for entry in entries if entry.state is Noted.RUNNING]
    acts = []
    for entry in entries:
        if entry.receipt in overdue:
            text = "did not stop at its time limit; its worker process was killed for it"
            acts.append(WorkAct(receipt=entry.receipt, verb=Verb.TIME_OUT, text=text))
        elif entry.state is not Noted.RUNNING or overdue or is_our_doing:
            acts.append(WorkAct(receipt=entry.receipt, verb=Verb.RELEASE, delay_ms=0))
        else:
            text = _text(entry, death, now, worker_id, beside=len(suspects) - 1)
            acts.append(WorkAct(receipt=entry.receipt, verb=Verb.CRASH, text=text))
    return acts


def _text(entry: Entry, death: Death, now: int, worker_id: str, *, beside: int) -> str:
    seconds = max(now - entry.started_at, 0) / 1000
    text = (
        f"its worker process died: {death.text()}; worker {worker_id or '?'}, "
        f"handler {entry.kind}, {seconds:.1f} s running"
    )
    return f"{text}, beside {beside} other jobs" if beside else text
