"""The demo's messages: a daily rhythm, an outage, kinds with poison messages.

- Eight queues of different sizes; days have rush hours, and each day is busier than the last.
- On the middle day the server behind one route is down for 90 minutes: requests to it fail, its
  circuit opens, the queue piles up and drains afterwards.
- In the evening of that day one queue waits for workers that are busy with another.
- One kind nearly always fails, one sometimes crashes its worker.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from penstock.domain.limits import DAY, HOUR, MINUTE

Floats = npt.NDArray[np.float64]
Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
DONE, DEAD, CANCELLED = 0, 1, 2
MAX_ATTEMPTS = 5
OUTAGE_FROM, OUTAGE_MS = 10 * HOUR, 90 * MINUTE  # of the day in the middle
DRAIN_MS = 40 * MINUTE  # how long the held queue takes to drain
GROWTH = 0.03  # of the load, per day
WORKERS = 24
STARVED_QUEUE, STARVED_FROM, STARVED_MS = 4, 18 * HOUR, 6 * MINUTE  # "thumbnails", the same day
BROKEN_QUEUE = 3  # "stock": the server behind its route is down for a while
ERRORS = ("", "502 Bad Gateway", "ValueError: no such currency", "MemoryError", "timeout of 30s")


def words(numbers: Ints, salt: int) -> Words:
    """64 bits for each number, by splitmix64."""
    with np.errstate(over="ignore"):
        x = (numbers.astype(np.uint64) + np.uint64(salt) * np.uint64(1 << 40)) * _GOLDEN + _GOLDEN
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def shares(numbers: Ints, salt: int) -> Floats:
    """In (0, 1)."""
    return ((words(numbers, salt) >> np.uint64(11)).astype(np.float64) + 0.5) / float(1 << 53)


def log_normal(numbers: Ints, salt: int, *, median: float, spread: float) -> Floats:
    """Realistic durations: most near the median, some many times as long."""
    radius = np.sqrt(-2 * np.log(shares(numbers, salt)))
    normal = radius * np.cos(2 * np.pi * shares(numbers, salt + 1))
    return np.asarray(median * np.exp(spread * normal), dtype=np.float64)


class DemoQueue(msgspec.Struct, frozen=True):
    name: str
    weight: float
    service_ms: float
    size: int
    kinds: tuple[str, ...]
    route: str | None = None


QUEUES = (
    DemoQueue("mail", 0.30, 180, 2_000, ("welcome", "invoice", "newsletter")),
    DemoQueue("orders", 0.20, 90, 1_200, ("order_placed", "order_paid", "order_shipped")),
    DemoQueue("hooks", 0.15, 250, 900, ("customer_changed",), "/hooks/customers/.*"),
    DemoQueue("stock", 0.10, 120, 700, ("stock_level",), "/partners/stock/.*"),
    DemoQueue("thumbnails", 0.10, 900, 400, ("resize", "resize_raw")),
    DemoQueue("reports", 0.05, 6_000, 800, ("daily_report", "export")),
    DemoQueue("billing", 0.07, 300, 1_500, ("charge", "refund")),
    DemoQueue("audit", 0.03, 20, 300, ("audit_line",)),
)
KINDS = tuple(kind for queue in QUEUES for kind in queue.kinds)
POISON = KINDS.index("refund")
KILLER = KINDS.index("resize_raw")
_FIRST_KIND = np.cumsum([0] + [len(queue.kinds) for queue in QUEUES])


class DemoMessages(msgspec.Struct, frozen=True):
    """Columns of the messages that were sent on one day, in the order of sending."""

    message_no: Ints
    queue: Ints
    kind: Ints
    worker: Ints
    outcome: Ints
    error: Ints  # of ERRORS
    sent_at: Ints
    first_leased_at: Ints
    leased_at: Ints
    finished_at: Ints
    failures: Ints
    crashes: Ints
    size: Ints

    def take(self, which: npt.NDArray[np.bool_] | Ints) -> DemoMessages:
        return DemoMessages(*(getattr(self, name)[which] for name in self.__struct_fields__))


def join(pasts: list[DemoMessages]) -> DemoMessages:
    names = DemoMessages.__struct_fields__
    return DemoMessages(
        *(np.concatenate([getattr(past, name) for past in pasts]) for name in names)
    )


def sent_on(
    day_no: int, *, messages: int, first_no: int, midnight: int, is_outage: bool
) -> DemoMessages:
    """The messages of a day; `day_no` counts from the first day."""
    no = np.arange(first_no, first_no + messages, dtype=np.int64)
    sent_at = midnight + np.sort((_time_of_day(shares(no, 1)) * DAY).astype(np.int64))
    queue = np.searchsorted(np.cumsum([q.weight for q in QUEUES])[:-1], shares(no, 2))
    kinds = np.array([len(q.kinds) for q in QUEUES])[queue]
    kind = _FIRST_KIND[queue] + (shares(no, 3) * kinds).astype(np.int64)
    failures, crashes, error = _trouble(no, kind)
    medians = np.array([q.service_ms for q in QUEUES])[queue]
    service = np.maximum(log_normal(no, 10, median=1.0, spread=0.8) * medians, 1)
    wait = _wait(no, sent_at)
    if is_outage:
        wait, failures, error = _in_outage(
            no, queue, sent_at, wait, failures, error, midnight + OUTAGE_FROM
        )
        wait = wait + _starvation_waits(queue, sent_at - midnight)
    # Pauses between attempts grow.
    pauses = failures * (2_000 + 3_000 * failures)
    first = sent_at + wait.astype(np.int64)
    leased = first + pauses + (failures * service).astype(np.int64)
    is_dead = failures >= MAX_ATTEMPTS
    is_cancelled = ~is_dead & (failures == 0) & (shares(no, 12) < 0.002)
    return DemoMessages(
        message_no=no,
        queue=queue,
        kind=kind,
        worker=(shares(no, 5) * WORKERS).astype(np.int64),
        outcome=np.where(is_dead, DEAD, np.where(is_cancelled, CANCELLED, DONE)),
        error=error,
        sent_at=sent_at,
        first_leased_at=np.where(is_cancelled, -1, first),
        leased_at=np.where(is_cancelled, -1, leased),
        finished_at=np.where(is_cancelled, first, leased + service.astype(np.int64)),
        failures=failures,
        crashes=crashes,
        size=np.maximum(
            log_normal(no, 14, median=1.0, spread=0.6) * np.array([q.size for q in QUEUES])[queue],
            1,
        ).astype(np.int64),
    )


def messages_of_days(messages: int, days: int) -> list[int]:
    """Messages per day; they add up to `messages` and grow from day to day."""
    weights = np.array([(1 + GROWTH) ** day for day in range(days)])
    ends = np.rint(np.cumsum(weights) / weights.sum() * messages).astype(int)
    return [int(n) for n in np.diff(np.concatenate(([0], ends)))]


def _time_of_day(share: Floats) -> Floats:
    """Nights are quiet; there is a rush in the morning and one in the evening."""
    hours = np.arange(0, 24, 0.25)
    rush = 0.25 + np.exp(-(((hours - 10) / 2.5) ** 2)) + 0.8 * np.exp(-(((hours - 19) / 2) ** 2))
    sums = np.concatenate(([0], np.cumsum(rush)))
    return np.asarray(np.interp(share, sums / sums[-1], np.append(hours, 24) / 24.0000001))


def _wait(no: Ints, sent_at: Ints) -> Floats:
    """Longer in rush hours."""
    hour = sent_at % DAY / HOUR
    busy = 1 + 6 * np.exp(-(((hour - 10) / 2) ** 2)) + 4 * np.exp(-(((hour - 19) / 1.5) ** 2))
    return log_normal(no, 7, median=40.0, spread=1.1) * np.asarray(busy, dtype=np.float64)


def _trouble(no: Ints, kind: Ints) -> tuple[Ints, Ints, Ints]:
    chance = shares(no, 9)
    failures = np.where(chance < 0.015, 1, 0) + np.where(chance < 0.002, 1, 0)
    error = np.where(failures > 0, 4, 0)
    is_poison = (kind == POISON) & (chance < 0.85)
    failures = np.where(is_poison, MAX_ATTEMPTS, failures)
    error = np.where(is_poison, 2, error)
    is_killer = (kind == KILLER) & (chance < 0.02)
    crashes = np.where(is_killer, 3, 0)
    failures = np.where(is_killer, MAX_ATTEMPTS, failures)
    return failures, crashes, np.where(is_killer, 3, error)


def _starvation_waits(queue: Ints, of_day: Ints) -> Floats:
    """Reports keep the workers busy for an hour, and the small queue waits for them."""
    since = of_day - STARVED_FROM
    is_hit = (queue == STARVED_QUEUE) & (since >= 0) & (since < HOUR)
    return np.where(is_hit, STARVED_MS * (1 - since / HOUR) + MINUTE, 0.0)


def _in_outage(
    no: Ints,
    queue: Ints,
    sent_at: Ints,
    wait: Floats,
    failures: Ints,
    error: Ints,
    began_at: int,
) -> tuple[Floats, Ints, Ints]:
    """Messages sent while the server is down wait for the end of the outage and of the drain."""
    since = sent_at - began_at
    is_hit = (queue == BROKEN_QUEUE) & (since >= 0) & (since < OUTAGE_MS + DRAIN_MS)
    left = np.maximum(OUTAGE_MS - since, 0) + np.maximum(
        DRAIN_MS * (1 - since / (OUTAGE_MS + DRAIN_MS)), 0
    )
    # The first ones are tried and fail; after that the circuit holds the queue.
    is_tried = is_hit & (since < 2 * MINUTE)
    longer = np.where(is_tried, wait, wait + left)
    return (
        np.where(is_hit, longer, wait),
        np.where(is_tried, MAX_ATTEMPTS, failures),
        np.where(is_tried, 1, error),
    )
