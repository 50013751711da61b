"""Which act follows a handler call, or a failure to make one.  Pure.

returned anything, or nothing   complete, with the result if the job keeps it
a result that cannot be kept    buried: repeating the work would not help
Retry, any other exception      fail, with the job's back-off
Snooze, Cancel, Bury            as returned or raised
a durable sleep or wait         snoozed until it is over
it took too long                timed out: dead, or failed if the job retries timeouts
no handler for its kind         parked: snoozed until a worker that has one claims it
arguments that do not match     parked while they may come from a newer release, then buried
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.domain.duration import duration_text
from penstock.domain.errors import PenstockError, TooLarge
from penstock.domain.limits import MINUTE, SECOND
from penstock.domain.message import retry
from penstock.domain.message.lease import Verb
from penstock.domain.message.outcome import (
    Bury,
    Cancel,
    Retry,
    Snooze,
    instance_of,
    suspension_of,
)
from penstock.worker.chunk import Chunk
from penstock.worker.claimed_job import ClaimedJob, Handler, JobAct
from penstock.worker.error_text import error_text, shortened

NOT_COMMITTED = "the transaction in which it completed itself was not committed"

# A recently enqueued job may come from a newer release than this worker.
_ROLLOUT_MS = 15 * MINUTE
_PARKED_MS = (5 * SECOND, 5 * MINUTE)


def act_for(
    job: ClaimedJob,
    handler: Handler,
    result: object,
    *,
    dice: float = 0.5,
    is_completed: bool = False,
) -> JobAct:
    """The act for `result`, which the handler returned or raised.

    If the handler completed the job itself, in a transaction of its own, there are two cases: the
    transaction committed and every further act is rejected with LeaseLost, or it did not and the
    job failed.
    """
    result = instance_of(result)
    suspension = suspension_of(result) if isinstance(result, BaseException) else None
    if suspension is not None:
        return JobAct(
            receipt=job.receipt,
            verb=Verb.SNOOZE,
            delay_ms=suspension.delay_ms,
            signal=suspension.signal,
        )
    match result:
        case Snooze():
            return JobAct(receipt=job.receipt, verb=Verb.SNOOZE, delay_ms=result.delay_ms)
        case Cancel():
            return JobAct(receipt=job.receipt, verb=Verb.CANCEL, text=_reason(result))
        case Bury():
            return JobAct(receipt=job.receipt, verb=Verb.BURY, text=_reason(result))
        case BaseException():
            return _fail(job, handler, error_text(result), dice, after_ms=_after_ms(result))
    if is_completed:
        return _fail(job, handler, NOT_COMMITTED, dice)
    if not handler.keeps_result:
        return JobAct(receipt=job.receipt, verb=Verb.COMPLETE, queue=job.queue)
    try:
        text = handler.write_result(result)
    except Exception as error:  # types of the application may raise anything
        return _bury_done(job.receipt, error)
    return JobAct(receipt=job.receipt, verb=Verb.COMPLETE, queue=job.queue, result=text)


def after_rejection(act: JobAct, error: PenstockError) -> JobAct | None:
    """The act to report in place of one that was rejected; None: nothing is left to report."""
    is_result_too_large = isinstance(error, TooLarge) and act.result is not None
    return _bury_done(act.receipt, error) if is_result_too_large else None


def _bury_done(receipt: str, error: Exception) -> JobAct:
    text = shortened(f"the job was done, but {error}")
    return JobAct(receipt=receipt, verb=Verb.BURY, text=text)


def acts_for(chunk: Chunk, result: object, roll: Callable[[], float]) -> list[JobAct]:
    """The acts for the jobs of a chunk, from what its handler returned or raised.

    A list has an outcome for each job; any other result counts for each.  A job that the handler
    settled by itself keeps that outcome.
    """
    assert chunk.handler is not None
    count = len(chunk.left)
    results: Sequence[object] = [result] * count
    if isinstance(result, list | tuple):
        if len(result) == count:
            results = result
        else:
            text = f"a list with {len(result)} outcomes was returned for {count} jobs"
            results = [ValueError(text)] * count
    if not chunk.items:  # a hook failed before the call
        return [act_for(job, chunk.handler, result, dice=roll()) for job in chunk.left]
    return [
        act_for(
            job,
            chunk.handler,
            item.outcome if item.is_settled else own,
            dice=roll(),
            is_completed=item.is_completed,
        )
        for job, item, own in zip(chunk.left, chunk.items, results, strict=True)
    ]


def time_out(job: ClaimedJob, *, dice: float = 0.5) -> JobAct:
    """The act for a job stopped at its time limit; the message decides whether it is retried."""
    handler = job.handler
    assert handler is not None
    limit = duration_text(job.timeout_ms or handler.timeout_ms or 0)
    delay_ms = _backoff_ms(job, handler, dice)
    text = f"stopped at its time limit of {limit}"
    return JobAct(receipt=job.receipt, verb=Verb.TIME_OUT, delay_ms=delay_ms, text=text)


def release(job: ClaimedJob) -> JobAct:
    """The act for a job that this worker does not run; it keeps its place."""
    return JobAct(receipt=job.receipt, verb=Verb.RELEASE, delay_ms=0)


def fail(job: ClaimedJob, text: str) -> JobAct:
    """The act for a job that ended without its handler's result."""
    return JobAct(receipt=job.receipt, verb=Verb.FAIL, text=text)


def park_unknown_kind(job: ClaimedJob, *, now: int) -> JobAct:
    """Park a job without a handler; it waits longer each time, and loses no attempt."""
    text = f"no handler is known for the kind {job.kind!r}" if job.kind else "it has no kind"
    return _park(job, text, now)


def park_unfit_arguments(job: ClaimedJob, error: Exception, *, now: int) -> JobAct:
    """Park or bury a job with unfit arguments: the sender may be newer than this worker."""
    if now - job.sent_at < _ROLLOUT_MS:
        return _park(job, str(error), now)
    return JobAct(receipt=job.receipt, verb=Verb.BURY, text=str(error))


def _reason(outcome: Cancel | Bury) -> str | None:
    return outcome.reason and shortened(outcome.reason)


def _after_ms(error: BaseException) -> int | None:
    return error.after_ms if isinstance(error, Retry) else None


def _fail(
    job: ClaimedJob, handler: Handler, text: str, dice: float, *, after_ms: int | None = None
) -> JobAct:
    if after_ms is None:
        after_ms = _backoff_ms(job, handler, dice)
    return JobAct(receipt=job.receipt, verb=Verb.FAIL, delay_ms=after_ms, text=text)


def _backoff_ms(job: ClaimedJob, handler: Handler, dice: float) -> int | None:
    """None: use the queue's back-off."""
    if handler.backoff is None:
        return None
    return retry.delay_ms(handler.backoff, failures=job.failures + 1, dice=dice)


def _park(job: ClaimedJob, text: str, now: int) -> JobAct:
    # Parking is not counted; delays equal to the job's age double each time.
    shortest, longest = _PARKED_MS
    delay_ms = min(max(now - job.sent_at, shortest), longest)
    return JobAct(receipt=job.receipt, verb=Verb.SNOOZE, delay_ms=delay_ms, text=text)
