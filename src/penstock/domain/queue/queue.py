"""Queues: names, settings and current state."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

import msgspec

from penstock.domain.described import about
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, HOUR, MINUTE, NUL, SECOND, check_range
from penstock.domain.message import retry
from penstock.domain.queue.fair_share import check_weights
from penstock.domain.queue.group_limit import MAX_ADMITTED
from penstock.domain.queue.rate import Rate, check_rate

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}")
MAX_WAIT_MS = HOUR  # of a claim, whatever a node's own limit is
MAX_TEXTS = 50  # labels, and as many annotations
MAX_ANNOTATION_CHARS = 64 * 1024  # in total: every transaction reads a queue's settings


class Counts(msgspec.Struct):
    """Counters of a queue.  At every commit: sent = waiting + ready + leased + totals of endings.

    Also used as a delta while a transaction runs, hence not frozen.
    """

    waiting: int = 0
    ready: int = 0
    leased: int = 0
    dead: int = 0  # waiting for a redrive
    sent_total: int = 0  # every arrival: sends, redrives, dead letters moved in
    done_total: int = 0
    dead_total: int = 0
    cancelled_total: int = 0
    failed_total: int = 0
    expired_total: int = 0  # leases that expired
    claimed_total: int = 0

    @property
    def live(self) -> int:
        return self.waiting + self.ready + self.leased

    @property
    def is_balanced(self) -> bool:
        ended = self.done_total + self.dead_total + self.cancelled_total
        return self.sent_total == self.live + ended

    def add(self, other: Counts) -> None:
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Ordering(StrEnum):
    STANDARD = "standard"
    GROUP = "group"  # messages of one group are handled strictly one after the other


class Redelivery(StrEnum):
    FRONT = "front"  # a redelivered message keeps its place
    BACK = "back"  # … goes behind all queued messages; if ordered by group, its group does


class DedupScope(StrEnum):
    QUEUE = "queue"
    GROUP = "group"  # the same key in different groups is not a duplicate


class DedupUntil(StrEnum):
    """How long a message holds its dedup key."""

    WINDOW = "window"  # for the queue's window, even if the message has ended
    CLAIMED = "claimed"  # until it is claimed for the first time, or ends before
    ENDED = "ended"  # until it has ended, or has left its queue


class QueueSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    lease_ms: Annotated[
        int, about("How long a claimed message is leased, unless the claim says otherwise.")
    ] = 30 * SECOND
    delay_ms: Annotated[int, about("How long a new message waits before it can be claimed.")] = 0
    retention_ms: Annotated[
        int | None, about("How long a message may wait before it is cancelled; null: for ever.")
    ] = None
    max_attempts: Annotated[
        int | None, about("After how many attempts a message dies; null: never.")
    ] = 5
    dead_letter_queue: Annotated[
        str | None, about("Where dead messages go; null: they stay in this queue.")
    ] = None
    ordering: Annotated[
        Ordering, about("Whether messages of one group are handled strictly one after the other.")
    ] = Ordering.STANDARD
    redelivery: Annotated[
        Redelivery,
        about("Where a message that is ready again is put: at its old place or at the back."),
    ] = Redelivery.FRONT
    backoff: Annotated[
        retry.Backoff, about("How long a failed message waits before it can be claimed again.")
    ] = retry.Exponential()
    max_body_bytes: Annotated[
        int | None, about("The largest body accepted; null: the server's limit.")
    ] = None
    max_messages: Annotated[
        int | None, about("The maximum number of messages in the queue; null: no limit.")
    ] = None
    dedup_window_ms: Annotated[int, about("How long a dedup key is remembered.")] = 5 * MINUTE
    dedup_by_content: Annotated[
        bool, about("A message without a dedup key gets one: the SHA-256 of its body.")
    ] = False
    dedup_scope: Annotated[
        DedupScope, about("Among which messages a dedup key must be unique.")
    ] = DedupScope.QUEUE
    wait_ms: Annotated[
        int | None, about("How long a claim without its own `wait_ms` waits; null: not at all.")
    ] = None
    labels: Annotated[dict[str, str], about("Labels of the queue, for people.")] = {}
    annotations: Annotated[
        dict[str, str], about("Strings that other protocols of the server store with the queue.")
    ] = {}
    max_crashes: Annotated[
        int | None, about("After how many crashed workers a message dies; null: never.")
    ] = 3
    max_leased: Annotated[
        int | None, about("How many messages may be leased at once; null: no limit.")
    ] = None
    max_leased_per_group: Annotated[
        int | None, about("How many messages of one group may be leased at once; null: no limit.")
    ] = None
    rate: Annotated[
        Rate | None, about("How many messages may be claimed per period; null: no limit.")
    ] = None
    rate_per_group: Annotated[
        Rate | None,
        about("How many messages of one group may be claimed per period; null: no limit."),
    ] = None
    is_fair: Annotated[bool, about("Weighted fair sharing between groups.")] = False
    weights: Annotated[
        dict[str, int],
        about('Weights of groups in a fair queue, 1 by default; "" stands for no group.'),
    ] = {}

    @property
    def rotates_groups(self) -> bool:
        """Whether a group whose first message is redelivered goes behind the other groups."""
        is_ordered = self.ordering is Ordering.GROUP
        return is_ordered and self.redelivery is Redelivery.BACK and not self.is_fair

    @property
    def limits_groups(self) -> bool:
        return self.max_leased_per_group is not None or self.rate_per_group is not None

    @property
    def limits_claims(self) -> bool:
        return self.max_leased is not None or self.rate is not None


class Queue(msgspec.Struct, frozen=True, kw_only=True):
    queue_no: int
    name: str
    settings: QueueSettings
    created_at: int
    changed_at: int = 0
    is_paused: bool = False
    version: int = 1  # grows with every change, so that caches notice
    held_by: str | None = None  # the circuit that holds it; independent of a pause

    @property
    def is_claimable(self) -> bool:
        return not self.is_paused and self.held_by is None

    @property
    def is_ordered(self) -> bool:
        return self.settings.ordering is Ordering.GROUP

    @property
    def has_limits(self) -> bool:
        """If so, messages affect which others may be claimed, and transactions are serialised."""
        settings = self.settings
        return settings.is_fair or settings.limits_claims or settings.limits_groups


def check_name(name: str, *, what: str = "a queue name") -> str:
    """Return it, or raise InvalidRequest: letters, digits, `_`, `-` and `.`, at most 80."""
    if not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"{what} is 1 to 80 letters, digits, '_', '-' or '.', not {name[:100]!r}"
        )
    return name


def check_settings(settings: QueueSettings, *, name: str) -> QueueSettings:
    """Return them, or raise InvalidRequest for the first value out of range."""
    check_range("lease_ms", settings.lease_ms, 0, 12 * HOUR)
    check_range("delay_ms", settings.delay_ms, 0, 366 * DAY)
    check_range("retention_ms", settings.retention_ms, SECOND, 3660 * DAY)
    check_range("max_attempts", settings.max_attempts, 1, 1_000_000)
    check_range("max_crashes", settings.max_crashes, 1, 1_000_000)
    check_range("max_body_bytes", settings.max_body_bytes, 1, 64 * 1024 * 1024)
    check_range("max_messages", settings.max_messages, 1, 10**12)
    check_range("dedup_window_ms", settings.dedup_window_ms, 0, 366 * DAY)
    check_range("wait_ms", settings.wait_ms, 0, MAX_WAIT_MS)
    _check_texts("labels", settings.labels, most_chars=256)
    _check_texts("annotations", settings.annotations, most_chars=10_000)
    _check_together(settings.annotations)
    retry.check(settings.backoff)
    if settings.dead_letter_queue is not None:
        check_name(settings.dead_letter_queue)
    _check_limits(settings)
    return settings


def _check_limits(settings: QueueSettings) -> None:
    check_range("max_leased", settings.max_leased, 1, 1_000_000)
    check_range("max_leased_per_group", settings.max_leased_per_group, 1, MAX_ADMITTED)
    check_rate("rate", settings.rate, most_burst=1_000_000)
    check_rate("rate_per_group", settings.rate_per_group, most_burst=MAX_ADMITTED)
    check_weights(settings.weights)
    if settings.limits_groups and settings.ordering is Ordering.GROUP:
        raise InvalidRequest(
            "a queue ordered by group handles one message of a group at a time: it takes neither "
            "max_leased_per_group nor rate_per_group"
        )


def _check_texts(name: str, texts: dict[str, str], *, most_chars: int) -> None:
    if len(texts) > MAX_TEXTS:
        raise InvalidRequest(f"a queue has at most {MAX_TEXTS} {name}, not {len(texts)}")
    for key, text in texts.items():
        if not 1 <= len(key) <= 128:
            raise InvalidRequest(f"the names of {name} have 1 to 128 characters, not {len(key)}")
        if NUL in key or NUL in text:
            raise InvalidRequest(f"{name} must not have a NUL in them")
        if len(text) > most_chars:
            raise InvalidRequest(
                f"{name}: {key!r} has {len(text)} characters; at most {most_chars} fit"
            )


def _check_together(annotations: dict[str, str]) -> None:
    together = sum(map(len, annotations.values()))
    if together > MAX_ANNOTATION_CHARS:
        raise InvalidRequest(
            f"annotations have at most {MAX_ANNOTATION_CHARS} characters together, not {together}"
        )
