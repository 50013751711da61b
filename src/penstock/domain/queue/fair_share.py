"""Fair share between the groups of a queue, decided when a message joins the queue.

Start-time fair queueing: every message gets a fair position, and claims follow it.  The greater the
weight of a group, the closer together are its positions.  So groups that all have queued messages
share the queue by their weights, however much each has sent.  A group that was idle starts at the
current position: it saves nothing up.  Every queued message can be claimed, so no worker idles
because of fairness.  Pure: the store keeps the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.domain.errors import InvalidRequest
from penstock.domain.limits import NUL

NO_POSITION = 0  # the queue is not fair, or the message has not joined it yet
FIRST_POSITION = 1
STEP = 1_000_000  # distance between positions of a group of weight 1
MAX_WEIGHT = 1_000
MAX_WEIGHTS = 1_000
NO_GROUP = ""  # the group of messages without one: labels are never empty


def next_position(passed: int, finish: int) -> int:
    """The fair position of a group's next message.

    `passed`: the greatest position that was claimed.  `finish`: where the group's last
    message ends.
    """
    return max(passed, finish, FIRST_POSITION)


def finish(position: int, weight: int) -> int:
    return position + STEP // weight


def weight_of(group: str | None, weights: Mapping[str, int]) -> int:
    return weights.get(group or NO_GROUP, 1) if weights else 1


def check_weights(weights: Mapping[str, int]) -> None:
    if len(weights) > MAX_WEIGHTS:
        raise InvalidRequest(f"a queue has at most {MAX_WEIGHTS} weights, not {len(weights)}")
    for group, weight in weights.items():
        if len(group) > 256 or NUL in group:
            raise InvalidRequest("the names of weights are groups: up to 256 characters, no NUL")
        if not 1 <= weight <= MAX_WEIGHT:
            raise InvalidRequest(f"weights are from 1 to {MAX_WEIGHT}, not {weight}")
