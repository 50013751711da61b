"""How many workers a queue needs: the analyser of autoscale-workload-rabbit, as a pure function.

    a worker is starting                         nothing, and the sample is not taken
    messages, and no worker at all               one more, at once; the sample is not taken
    fewer samples than needed since the last     nothing yet
    consumed at some rate                        as many as clear the backlog within the goal
    no rate, nothing waits, nothing is staged    none
    no rate, but something waits                 at least one, and no fewer than there are

At most `most_up` workers are added at once; removals have no limit.

Besides that analyser's goal (clear the backlog within a number of seconds) there are two more: a
number of messages per worker, for sources that do not report rates, and a maximum age of the oldest
message.  With several goals, the largest number of workers counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from penstock.domain.described import about
from penstock.domain.errors import ReplicasUnavailable, SourceUnavailable

MAX_REPLICAS = 1_000_000  # beyond this a number is a mistake


class Profile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    samples_needed: Annotated[int, about("Number of samples per decision.", ge=1, le=10_000)] = 10
    backlog_goal_s: Annotated[
        int,
        about("Seconds in which the backlog should be cleared; 0: no such goal.", ge=0, le=10**9),
    ] = 300
    messages_per_worker: Annotated[
        Annotated[int, Meta(ge=1, le=10**9)] | None,
        about("Instead of backlog_goal_s: waiting messages per worker; null: unset."),
    ] = None
    oldest_goal_ms: Annotated[
        Annotated[int, Meta(ge=1, le=10**12)] | None,
        about("The age that the oldest message should not exceed; null: unset."),
    ] = None
    most_up: Annotated[
        int, about("Maximum number of workers that one decision adds.", ge=1, le=MAX_REPLICAS)
    ] = 5
    count_leased: Annotated[bool, about("Leased messages count as backlog, too.")] = False
    keep_busy: Annotated[bool, about("Keep one worker while messages are leased.")] = False

    def __post_init__(self) -> None:
        if not (self.backlog_goal_s or self.messages_per_worker or self.oldest_goal_ms):
            raise ValueError(
                "no goal is set: set backlog_goal_s, messages_per_worker or oldest_goal_ms"
            )

    @property
    def needs_rates(self) -> bool:
        return self.messages_per_worker is None and bool(self.backlog_goal_s)


class Staged(msgspec.Struct, frozen=True):
    """A queue whose messages will arrive in the one that is worked on."""

    queue: Annotated[str, about("The name of the staging queue.")]
    ready: Annotated[int, about("Messages that wait there.")]
    publish_rate: Annotated[float, about("Messages that arrive there per second.")] = 0.0


class QueueLoad(msgspec.Struct, frozen=True):
    """One of several queues of a fleet."""

    queue: Annotated[str, about("The name of the queue.")]
    ready: Annotated[int, about("Messages that can be claimed.")]
    leased: Annotated[int, about("Messages that are leased.")] = 0
    oldest_ms: Annotated[
        int | None, about("The age of the oldest message that can be claimed.")
    ] = None


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One reading of a fleet's queues.  Rates are per second; one that is not reported is 0."""

    ready: Annotated[int, about("Messages that can be claimed.")]
    leased: Annotated[int, about("Messages that are leased.")] = 0
    consume_rate: Annotated[float, about("Messages claimed per second.")] = 0.0
    publish_rate: Annotated[float, about("Messages that arrive per second.")] = 0.0
    oldest_ms: Annotated[
        int | None,
        about("The age of the oldest message that can be claimed; null: none, or unknown."),
    ] = None
    staged: Annotated[tuple[Staged, ...], about("Its staging queues.")] = ()
    queues: Annotated[
        tuple[QueueLoad, ...], about("Each of its queues, where it has several.")
    ] = ()


class Replicas(msgspec.Struct, frozen=True, kw_only=True):
    running: Annotated[int, about("Workers that run.")]
    starting: Annotated[int, about("Workers that start.")] = 0
    requested: Annotated[
        int, about("Workers that were requested, including those that wait to be started.")
    ]

    @property
    def total(self) -> int:
        return self.running + self.starting


class ScalingReason(StrEnum):
    """Why this was recommended.  Stable: used in facts and answers."""

    STARTING = "starting"
    FIRST_MESSAGE = "first_message"
    GATHERING = "gathering"
    BACKLOG = "backlog"  # it needs more workers
    OLDEST = "oldest"  # the oldest message waits longer than the goal
    LESS_NEEDED = "less_needed"
    IDLE = "idle"
    BUSY = "busy"  # idle except for leased messages
    NO_RATE_YET = "no_rate_yet"
    STEADY = "steady"


class Inputs(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a recommendation is based on; None: it was not needed."""

    running: Annotated[int, about("Workers that ran.")]
    starting: Annotated[int, about("Workers that started.")]
    requested: Annotated[
        int, about("Workers that were requested, including those that waited to be started.")
    ]
    samples: Annotated[int, about("How many samples there were since the last decision.")]
    samples_needed: Annotated[int, about("How many samples a decision needs.")]
    backlog_goal_s: Annotated[
        int, about("The seconds within which the backlog should be cleared; 0: no such goal.")
    ]
    messages_per_worker: Annotated[
        int | None, about("How many waiting messages one worker should have.")
    ] = None
    oldest_goal_ms: Annotated[
        int | None, about("The age that the oldest message should not exceed.")
    ] = None
    ready: Annotated[int | None, about("Messages that could be claimed.")] = None
    leased: Annotated[int | None, about("Messages that were leased.")] = None
    staged: Annotated[int | None, about("Messages in the staging queues.")] = None
    backlog: Annotated[int | None, about("The messages that count as backlog.")] = None
    oldest_ms: Annotated[
        int | None, about("The age of the oldest message that could be claimed.")
    ] = None
    average_backlog: Annotated[float | None, about("The average backlog of the samples.")] = None
    consume_rate: Annotated[float | None, about("Messages claimed per second, on average.")] = None
    publish_rate: Annotated[
        float | None, about("Messages that arrived per second, on average.")
    ] = None
    staged_publish_rate: Annotated[
        float | None, about("Messages that arrived in the staging queues per second, on average.")
    ] = None
    rate_per_worker: Annotated[
        float | None, about("Messages that one worker claimed per second, on average.")
    ] = None
    needed: Annotated[int | None, about("How many workers clear the backlog within the goal.")] = (
        None
    )


class Recommendation(msgspec.Struct, frozen=True, kw_only=True):
    change: int
    reason: ScalingReason
    inputs: Inputs

    @property
    def wanted(self) -> int:
        return self.inputs.running + self.inputs.starting + self.change


class ReadingWindow(msgspec.Struct, frozen=True):
    """The analyser's state: the last readings, and how many since the last decision."""

    samples: tuple[Sample, ...] = ()
    count: int = 0


def analyse(
    window: ReadingWindow, sample: Sample, replicas: Replicas, profile: Profile
) -> tuple[ReadingWindow, Recommendation]:
    """Analyse this reading with the current replicas."""
    inputs = _inputs(window, replicas, profile)
    if replicas.starting > 0:
        return window, Recommendation(change=0, reason=ScalingReason.STARTING, inputs=inputs)
    inputs = _with_reading(inputs, sample, profile)
    backlog = inputs.backlog or 0
    if backlog > 0 and replicas.total == 0:
        return window, Recommendation(change=1, reason=ScalingReason.FIRST_MESSAGE, inputs=inputs)
    kept = msgspec.structs.replace(sample, queues=())  # averages do not need them
    samples = (*window.samples, kept)[-profile.samples_needed :]
    window = ReadingWindow(samples, window.count + 1)
    inputs = msgspec.structs.replace(inputs, samples=window.count)
    if window.count < profile.samples_needed:
        return window, Recommendation(change=0, reason=ScalingReason.GATHERING, inputs=inputs)
    return ReadingWindow(samples, 0), _decide(samples, replicas, profile, inputs)


def combine(by_queue: Mapping[str, Sample], *, shares_leased: bool = False) -> Sample:
    """One reading for all queues of a fleet: sums, and the greatest age.

    `shares_leased`: each reading reports the leased messages of all queues together.
    """
    samples = list(by_queue.values())
    if len(samples) == 1:
        return samples[0]
    ages = [one.oldest_ms for one in samples if one.oldest_ms is not None]
    leased = [one.leased for one in samples]
    return Sample(
        ready=sum(one.ready for one in samples),
        leased=max(leased) if shares_leased else sum(leased),
        consume_rate=math.fsum(one.consume_rate for one in samples),
        publish_rate=math.fsum(one.publish_rate for one in samples),
        oldest_ms=max(ages, default=None),
        staged=tuple(staged for one in samples for staged in one.staged),
        queues=tuple(
            QueueLoad(name, one.ready, one.leased, one.oldest_ms) for name, one in by_queue.items()
        ),
    )


def check_reading(sample: Sample) -> Sample:
    """Return it, or raise SourceUnavailable if it is impossible."""
    counts = (sample.ready, sample.leased, *(one.ready for one in sample.staged))
    rates = (sample.consume_rate, sample.publish_rate, *(one.publish_rate for one in sample.staged))
    if any(count < 0 for count in counts):
        raise SourceUnavailable(f"the source reports {min(counts)} messages, which is impossible")
    if sample.oldest_ms is not None and sample.oldest_ms < 0:
        raise SourceUnavailable(f"the source reports an age of {sample.oldest_ms} ms")
    if not all(math.isfinite(rate) and rate >= 0 for rate in rates):
        raise SourceUnavailable("the source reports a rate that is negative or not a number")
    return sample


def check_replicas(replicas: Replicas) -> Replicas:
    """Return them, or raise ReplicasUnavailable if they are impossible."""
    for count in (replicas.running, replicas.starting, replicas.requested):
        if not 0 <= count <= MAX_REPLICAS:
            raise ReplicasUnavailable(f"the manager reports {count} replicas, which is impossible")
    return replicas


def _decide(
    samples: tuple[Sample, ...], replicas: Replicas, profile: Profile, inputs: Inputs
) -> Recommendation:
    total = replicas.total
    inputs = _with_averages(inputs, samples, replicas, profile)
    needed, reason = _needed(inputs, profile, total)
    if needed == 0 and profile.keep_busy and inputs.leased:
        needed, reason = min(1, total), ScalingReason.BUSY
    inputs = msgspec.structs.replace(inputs, needed=needed)
    change = min(needed - total, profile.most_up)
    return Recommendation(change=change, reason=reason, inputs=inputs)


def _needed(inputs: Inputs, profile: Profile, total: int) -> tuple[int, ScalingReason]:
    """The largest number that any of the goals needs."""
    found: list[tuple[int, ScalingReason]] = []
    if profile.messages_per_worker is not None:
        found.append(_needed_by_count(inputs, profile.messages_per_worker, total))
    elif profile.backlog_goal_s:
        found.append(_needed_by_rate(inputs, profile.backlog_goal_s, total))
    if profile.oldest_goal_ms is not None:
        found.append(_needed_by_age(inputs, profile.oldest_goal_ms, total))
    return max(found, key=lambda one: one[0])


def _needed_by_count(inputs: Inputs, per_worker: int, total: int) -> tuple[int, ScalingReason]:
    if not inputs.average_backlog and not inputs.staged_publish_rate:
        return 0, ScalingReason.IDLE
    needed = max(1, min(math.ceil((inputs.backlog or 0) / per_worker), MAX_REPLICAS))
    return needed, _direction(needed, total)


def _needed_by_age(inputs: Inputs, goal_ms: int, total: int) -> tuple[int, ScalingReason]:
    """Enough workers to claim all waiting messages within the goal.

    If the oldest is too old even so, one more, unless nothing moves, as in a paused queue, where
    more workers would not help.
    """
    needed, reason = _needed_by_rate(inputs, goal_ms / 1000, total)
    is_moving = bool(inputs.consume_rate or inputs.leased)
    if is_moving and inputs.oldest_ms is not None and inputs.oldest_ms > goal_ms:
        return max(needed, total + 1), ScalingReason.OLDEST
    return needed, reason


def _needed_by_rate(inputs: Inputs, goal_s: float, total: int) -> tuple[int, ScalingReason]:
    floor = 1 if inputs.average_backlog else 0
    if inputs.rate_per_worker is not None:
        # The current backlog with an average rate, as in autoscale-workload-rabbit.
        by_goal = (inputs.backlog or 0) / goal_s / inputs.rate_per_worker
        needed = max(floor, math.floor(min(by_goal, MAX_REPLICAS) + 0.5))
        return needed, _direction(needed, total)
    if inputs.consume_rate:
        return floor, _direction(floor, total)  # no consumer is left
    if not floor and not inputs.staged_publish_rate:
        return 0, ScalingReason.IDLE
    return max(1, total), ScalingReason.NO_RATE_YET


def _direction(needed: int, total: int) -> ScalingReason:
    if needed > total:
        return ScalingReason.BACKLOG
    return ScalingReason.LESS_NEEDED if needed < total else ScalingReason.STEADY


def _inputs(window: ReadingWindow, replicas: Replicas, profile: Profile) -> Inputs:
    return Inputs(
        running=replicas.running,
        starting=replicas.starting,
        requested=replicas.requested,
        samples=window.count,
        samples_needed=profile.samples_needed,
        backlog_goal_s=profile.backlog_goal_s,
        messages_per_worker=profile.messages_per_worker,
        oldest_goal_ms=profile.oldest_goal_ms,
    )


def _with_reading(inputs: Inputs, sample: Sample, profile: Profile) -> Inputs:
    staged = sum(one.ready for one in sample.staged)
    return msgspec.structs.replace(
        inputs,
        ready=sample.ready,
        leased=sample.leased,
        staged=staged,
        backlog=_target(sample, profile) + staged,
        oldest_ms=sample.oldest_ms,
    )


def _with_averages(
    inputs: Inputs, samples: tuple[Sample, ...], replicas: Replicas, profile: Profile
) -> Inputs:
    # As in autoscale-workload-rabbit, staged queues are averaged over pairs of reading and queue.
    staged = [one for sample in samples for one in sample.staged]
    consumed = _mean([sample.consume_rate for sample in samples])
    backlog = _mean([_target(sample, profile) for sample in samples])
    return msgspec.structs.replace(
        inputs,
        average_backlog=backlog + _mean([one.ready for one in staged]),
        consume_rate=consumed,
        publish_rate=_mean([sample.publish_rate for sample in samples]),
        staged_publish_rate=_mean([one.publish_rate for one in staged]),
        rate_per_worker=(consumed / replicas.running or None) if replicas.running else None,
    )


def _target(sample: Sample, profile: Profile) -> int:
    return sample.ready + (sample.leased if profile.count_leased else 0)


def _mean(values: list[int] | list[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0
