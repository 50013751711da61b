"""What becomes of a job after its handler was called, or could not be.  Pure.

returned anything, or nothing   complete
Retry, any other exception      fail, with the job's back-off
Snooze, Cancel, Bury            that
it took too long                timed out: dead, or failed if the job retries time-outs
no handler for its kind         parked: snoozed until a worker that has one comes along
arguments that do not fit       parked while they may come from a newer program, then buried
"""

from __future__ import annotations

from penstock.domain.duration import duration_text
from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.message import retry
from penstock.domain.message.lease import Verb
from penstock.domain.message.outcome import Bury, Cancel, Retry, Snooze, instance_of
from penstock.ports.work import Handler, Work, WorkAct
from penstock.worker.error_text import error_text, shortened

NOT_COMMITTED = "the transaction in which it completed itself was not committed"

# Whoever was sent so lately may come from a program that is newer than this worker.
_ROLLOUT_MS = 15 * MINUTE
_PARKED_MS = (5 * SECOND, 5 * MINUTE)


def act_for(
    work: Work,
    handler: Handler,
    result: object,
    *,
    dice: float = 0.5,
    is_completed: bool = False,
) -> WorkAct:
    """`result` is what the handler has returned or raised.

    If the handler has completed the job itself, in a transaction of its own, then that has been
    committed and every further act is refused with LeaseLost, or it has not and the job failed.
    """
    result = instance_of(result)
    match result:
        case Snooze():
            return WorkAct(receipt=work.receipt, verb=Verb.SNOOZE, delay_ms=result.delay_ms)
        case Cancel():
            return WorkAct(receipt=work.receipt, verb=Verb.CANCEL, text=_reason(result))
        case Bury():
            return WorkAct(receipt=work.receipt, verb=Verb.BURY, text=_reason(result))
        case BaseException():
            return _failed(work, handler, error_text(result), dice, after_ms=_after_ms(result))
    if is_completed:
        return _failed(work, handler, NOT_COMMITTED, dice)
    return WorkAct(receipt=work.receipt, verb=Verb.COMPLETE, queue=work.queue)


def timed_out(work: Work, handler: Handler, *, dice: float = 0.5) -> WorkAct:
    """It took too long and was stopped.  What that means is kept with the message."""
    limit = duration_text(work.timeout_ms or handler.timeout_ms or 0)
    delay_ms = _backoff_ms(work, handler, dice)
    text = f"stopped at its time limit of {limit}"
    return WorkAct(receipt=work.receipt, verb=Verb.TIME_OUT, delay_ms=delay_ms, text=text)


def parked(work: Work, *, now: int) -> WorkAct:
    """No handler is known for it: it waits, ever longer, and loses nothing."""
    text = f"no handler is known for the kind {work.kind!r}" if work.kind else "it has no kind"
    return _park(work, text, now)


def misfit(work: Work, error: Exception, *, now: int) -> WorkAct:
    """Its arguments do not fit its handler: maybe the sender is newer than this worker."""
    if now - work.sent_at < _ROLLOUT_MS:
        return _park(work, str(error), now)
    return WorkAct(receipt=work.receipt, verb=Verb.BURY, text=str(error))


def _reason(outcome: Cancel | Bury) -> str | None:
    return outcome.reason and shortened(outcome.reason)


def _after_ms(error: BaseException) -> int | None:
    return error.after_ms if isinstance(error, Retry) else None


def _failed(
    work: Work, handler: Handler, text: str, dice: float, *, after_ms: int | None = None
) -> WorkAct:
    if after_ms is None:
        after_ms = _backoff_ms(work, handler, dice)
    return WorkAct(receipt=work.receipt, verb=Verb.FAIL, delay_ms=after_ms, text=text)


def _backoff_ms(work: Work, handler: Handler, dice: float) -> int | None:
    """None: as the queue says."""
    if handler.backoff is None:
        return None
    return retry.delay_ms(handler.backoff, failures=work.failures + 1, dice=dice)


def _park(work: Work, text: str, now: int) -> WorkAct:
    # Nothing counts how often it was parked, but its age grows by every wait: they double.
    shortest, longest = _PARKED_MS
    delay_ms = min(max(now - work.sent_at, shortest), longest)
    return WorkAct(receipt=work.receipt, verb=Verb.SNOOZE, delay_ms=delay_ms, text=text)
