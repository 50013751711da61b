"""How long to wait before a failed message may be claimed again."""

from __future__ import annotations

from typing import Annotated

import msgspec

from penstock.domain.described import about
from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import DAY, HOUR, SECOND, check_range


class Fixed(msgspec.Struct, frozen=True, tag="fixed", tag_field="type", forbid_unknown_fields=True):
    delay_ms: Annotated[int, about("The wait after each failure.")] = 10 * SECOND


class Listed(msgspec.Struct, frozen=True, tag="list", tag_field="type", forbid_unknown_fields=True):
    """The n-th failure waits for the n-th delay; after the end the last one repeats."""

    delays_ms: Annotated[
        tuple[int, ...], about("The wait after the first failure, the second, and so on.")
    ] = (SECOND,)


class Exponential(
    msgspec.Struct, frozen=True, tag="exponential", tag_field="type", forbid_unknown_fields=True
):
    """`first_ms * factor**(failures-1)`, at most `max_ms`, spread by ± `jitter` (a share of it)."""

    first_ms: Annotated[int, about("The wait after the first failure.")] = SECOND
    factor: Annotated[float, about("The growth factor from one wait to the next.")] = 2.0
    max_ms: Annotated[int, about("The longest wait.")] = HOUR
    jitter: Annotated[float, about("The fraction by which a wait varies randomly, up or down.")] = (
        0.2
    )


Backoff = Fixed | Listed | Exponential

MAX_DELAY_MS = 366 * DAY


def delay_ms(backoff: Backoff, *, failures: int, dice: float) -> int:
    """The wait after the given number of failures (1 for the first); `dice` is in [0, 1)."""
    match backoff:
        case Fixed():
            return backoff.delay_ms
        case Listed():
            return backoff.delays_ms[min(failures, len(backoff.delays_ms)) - 1]
        case Exponential():
            base = min(_grown(backoff, failures), float(backoff.max_ms))
            return int(base * (1 - backoff.jitter + 2 * backoff.jitter * dice))


def check(backoff: Backoff) -> Backoff:
    """Return it, or raise InvalidRequest for values out of range."""
    match backoff:
        case Fixed():
            check_range("backoff.delay_ms", backoff.delay_ms, 0, MAX_DELAY_MS)
        case Listed():
            if not backoff.delays_ms:
                raise InvalidRequest("backoff.delays_ms needs at least one delay")
            if len(backoff.delays_ms) > 100:
                raise InvalidRequest("backoff.delays_ms takes at most 100 delays")
            for delay in backoff.delays_ms:
                check_range("backoff.delays_ms", delay, 0, MAX_DELAY_MS)
        case Exponential():
            check_range("backoff.first_ms", backoff.first_ms, 0, MAX_DELAY_MS)
            check_range("backoff.max_ms", backoff.max_ms, 0, MAX_DELAY_MS)
            check_range("backoff.factor", backoff.factor, 1, 100)
            check_range("backoff.jitter", backoff.jitter, 0, 1)
    return backoff


def _grown(backoff: Exponential, failures: int) -> float:
    try:
        return backoff.first_ms * backoff.factor ** (failures - 1)
    except OverflowError:  # hundreds of failures: more than a float holds, and than any maximum
        return backoff.max_ms if backoff.first_ms else 0
