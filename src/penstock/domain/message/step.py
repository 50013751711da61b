"""Durable steps of a job, and waits for signals, which end as steps.

A step is recorded once, by the lease holder: a later attempt finds its outcome and does
not run that part again.  A wait ends as a step too, by a signal or by its timeout:

    registered ──── signal ────▶ step {"body": …}
         └───────── timeout ───▶ step {"timed_out": true}

A registered wait is armed when its message is snoozed under the lease that registered it; a signal
makes only messages of armed waits due, because any other one has been claimed since.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from penstock.domain.errors import InvalidRequest, TooLarge
from penstock.domain.limits import DAY, NUL, Limits, check_json_size
from penstock.domain.message.draft import is_label
from penstock.domain.message.lifecycle import Message, State

MAX_STEPS = 1_000  # of one message
LONGEST_WAIT_MS = 3_650 * DAY  # of one snooze; a wait without a timeout is snoozed again
SIGNAL_KEPT_MS = 7 * DAY
TIMED_OUT = '{"timed_out":true}'
_PREFIX_CHARS = 32


class _Sleep(msgspec.Struct):
    sleep_ms: int


_sleep = msgspec.json.Decoder(_Sleep)


class StepKind(StrEnum):
    STEP = "step"
    SLEEP = "sleep"
    WAIT = "wait"  # for a signal


class StepTimes(msgspec.Struct, frozen=True):
    """For history: where the time of a message went."""

    kind: StepKind = StepKind.STEP
    lease_no: int | None = None  # of the attempt that ran the step, or began the sleep or the wait
    took_ms: int | None = None  # None: its lease holder did not measure it


class RecordedStep(msgspec.Struct, frozen=True):
    """A recorded part of a job."""

    step_no: int  # within its message, from 1
    name: str
    outcome: str  # JSON text
    at: int


class ArchivedStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step in a snapshot of the lake, or a wait that has not ended and has no outcome yet."""

    name: str
    kind: StepKind
    at: int
    outcome: msgspec.Raw = msgspec.Raw(b"null")
    lease_no: int | None = None
    took_ms: int | None = None
    signal: str | None = None  # of a wait that has not ended
    until_at: int | None = None

    @property
    def is_recorded(self) -> bool:
        return self.signal is None


archived_steps = msgspec.json.Decoder(list[ArchivedStep])


def steps_at(earlier: str | None, later: str | None, *, at: int) -> str | None:
    """The steps of a message at an instant, from snapshots before and after it; None: it had none.

    The later one has all steps that were recorded between them; a wait that ended after the instant
    is only in the earlier one as it was.
    """
    before = archived_steps.decode(earlier) if earlier else []
    after = archived_steps.decode(later) if later else []
    known = {s.name: s for s in (*before, *after) if s.is_recorded and s.at <= at}
    waits = [s for s in (before if earlier else after) if not s.is_recorded and s.at <= at]
    found = [*known.values(), *(wait for wait in waits if wait.name not in known)]
    return msgspec.json.encode(found).decode() if found else None


class Signal(msgspec.Struct, frozen=True):
    """A named event with a body.  While it is kept, a wait for its name ends at once."""

    name: str
    body: str  # JSON text
    at: int
    until_at: int


class Wait(msgspec.Struct, frozen=True):
    """A message that waits for a signal."""

    name: str  # of the signal
    message_no: int
    step: str  # the name of the step that the wait ends as
    at: int
    until_at: int | None = None  # when it times out
    lease_no: int | None = None  # the lease under which the message was snoozed


def check_step_name(name: str, limits: Limits) -> str:
    """Raises InvalidRequest.  A step may be named after a signal."""
    if not 0 < len(name) <= limits.max_label_chars + _PREFIX_CHARS or NUL in name:
        raise InvalidRequest(
            f"the name of a step has 1 to {limits.max_label_chars + _PREFIX_CHARS} characters, "
            "none of them NUL"
        )
    return name


def check_signal_name(name: str, limits: Limits) -> str:
    """Raises InvalidRequest."""
    if not is_label(name, limits):
        raise InvalidRequest(
            f"the name of a signal has 1 to {limits.max_label_chars} characters, none of them NUL"
        )
    return name


def check_outcome(outcome: str, limits: Limits) -> None:
    """Raises TooLarge."""
    check_json_size("the outcome of a step", outcome, limits, "max_step_bytes")


def check_signal_body(body: str, limits: Limits) -> None:
    """Raises TooLarge: the body becomes the outcome of a step."""
    check_json_size("the body of a signal", body, limits, "max_step_bytes")


def check_count(step_no: int) -> None:
    """Raises TooLarge if this is one step too many."""
    if step_no > MAX_STEPS:
        raise TooLarge(f"a message takes at most {MAX_STEPS} steps")


def outcome_of(wait: Wait, signal: Signal | None, *, now: int) -> str | None:
    """The outcome of a wait; None while it lasts.  A signal counts until the timeout is noticed."""
    if signal is not None:
        return arrived(signal.body)
    if wait.until_at is not None and wait.until_at <= now:
        return TIMED_OUT
    return None


def arrived(body: str) -> str:
    return f'{{"body":{body}}}'


def times_of(wait: Wait, outcome: str, *, now: int) -> StepTimes:
    """A wait whose timeout is noticed late was over when it timed out."""
    ended_at = now if outcome != TIMED_OUT or wait.until_at is None else wait.until_at
    return StepTimes(StepKind.WAIT, wait.lease_no, max(0, ended_at - wait.at))


def wait_ms(wait: Wait, *, now: int) -> int:
    """How long to snooze the message."""
    if wait.until_at is None:
        return LONGEST_WAIT_MS
    return max(0, min(wait.until_at - now, LONGEST_WAIT_MS))


def slept(ms: int) -> str:
    """The outcome of a durable sleep, which counts from the instant of its step."""
    return f'{{"sleep_ms":{ms}}}'


def sleep_left_ms(step: RecordedStep, *, now: int) -> int:
    """How much of a durable sleep is left; raises InvalidRequest for any other step."""
    try:
        ms = _sleep.decode(step.outcome).sleep_ms
    except msgspec.DecodeError:
        raise InvalidRequest(f"step {step.name!r} is recorded, but not as a sleep") from None
    return max(0, step.at + ms - now)


def is_woken(wait: Wait, message: Message) -> bool:
    """Whether a signal makes the message due: it has not been claimed since its snooze."""
    return message.state is State.WAITING and message.lease_no == wait.lease_no
