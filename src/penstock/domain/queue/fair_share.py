"""Fair share between the groups of a queue, decided when a message takes its place in line.

Start-time fair queueing: every message gets a turn, and claims go by it.  The turns of a group
follow each other at a distance that is the smaller the greater its weight; so of groups that all
have something in line each gets a share by its weight, whoever sent how much.  A group that was
away begins where the line is by now: nobody saves up.  Whatever stands in line can be claimed, so
nobody idles because of it.  Pure: the store keeps the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import NUL

NO_TURN = 0  # of a message in a queue that is not fair, or that has not joined the line yet
FIRST_TURN = 1
STEP = 1_000_000  # from turn to turn of a group of weight 1
MAX_WEIGHT = 1_000
MAX_WEIGHTS = 1_000
NOBODY = ""  # the group of all messages without one: no label is that short


def next_turn(passed: int, finish: int) -> int:
    """The turn of the next message of a group.

    `passed`: how far the line is, the greatest turn that was claimed.  `finish`: where the group's
    last message has left off.
    """
    return max(passed, finish, FIRST_TURN)


def finish(turn: int, weight: int) -> int:
    return turn + STEP // weight


def weight_of(group: str | None, weights: Mapping[str, int]) -> int:
    return weights.get(group or NOBODY, 1) if weights else 1


def check_weights(weights: Mapping[str, int]) -> None:
    if len(weights) > MAX_WEIGHTS:
        raise InvalidRequest(f"a queue has at most {MAX_WEIGHTS} weights, not {len(weights)}")
    for group, weight in weights.items():
        if len(group) > 256 or NUL in group:
            raise InvalidRequest("the names of weights are groups: up to 256 characters, no NUL")
        if not 1 <= weight <= MAX_WEIGHT:
            raise InvalidRequest(f"weights are from 1 to {MAX_WEIGHT}, not {weight}")
