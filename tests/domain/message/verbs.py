"""Every verb of the lifecycle as a plain call, and what it makes of each state.

The instant is two minutes past noon: every lease and every delay of the builders is over by then.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from penstock.domain.errors import PenstockError
from penstock.domain.limits import MINUTE
from penstock.domain.message import lease as leases
from penstock.domain.message import lifecycle, transfer
from penstock.domain.message.lease import Lease, LeaseAct, Verb
from penstock.domain.message.lifecycle import Message, State
from tests.clocks import NOON
from tests.factories import a_message_in, a_queue

LATER = NOON + 2 * MINUTE
QUEUE = a_queue()
OTHER = a_queue(2, "other")

VERBS: dict[str, Callable[[Message], Message]] = {
    "claim": lambda m: lifecycle.claim(m, now=LATER, lease_ms=MINUTE),
    "complete": lambda m: lifecycle.complete(m, lease_no=1),
    "complete, late": lambda m: lifecycle.complete(m, lease_no=m.lease_no, is_late_ok=True),
    "fail": lambda m: lifecycle.fail(m, QUEUE, lease_no=1, now=LATER),
    "release": lambda m: lifecycle.release(m, QUEUE, lease_no=1, now=LATER),
    "snooze": lambda m: lifecycle.snooze(m, QUEUE, lease_no=1, now=LATER, delay_ms=MINUTE),
    "extend": lambda m: lifecycle.extend(m, lease_no=1, now=LATER, lease_ms=MINUTE),
    "extend, late": lambda m: lifecycle.extend(
        m, lease_no=m.lease_no, now=LATER, lease_ms=MINUTE, is_late_ok=True
    ),
    "extend, past its deadline": lambda m: _extended(replace(m, timeout_ms=MINUTE)),
    "time out": lambda m: lifecycle.time_out(m, QUEUE, lease_no=1, now=LATER),
    "crash": lambda m: lifecycle.crash(m, QUEUE, lease_no=1, now=LATER),
    "bury, by its holder": lambda m: lifecycle.bury(m, lease_no=1),
    "cancel, by its holder": lambda m: lifecycle.cancel(m, lease_no=1),
    "complete, by an operator": lambda m: lifecycle.complete_by_hand(m),
    "bury, by an operator": lambda m: lifecycle.bury(m),
    "cancel, by an operator": lambda m: lifecycle.cancel(m),
    "bury, by an operator, also while it runs": lambda m: lifecycle.bury(m, is_running_ok=True),
    "cancel, by an operator, also while it runs": lambda m: lifecycle.cancel(m, is_running_ok=True),
    "reschedule to later": lambda m: lifecycle.reschedule(m, due_at=LATER + 1, now=LATER),
    "reschedule to now": lambda m: lifecycle.reschedule(m, due_at=LATER, now=LATER),
    "redrive": lambda m: transfer.redrive(m, QUEUE, now=LATER),
    "move to another queue": lambda m: transfer.move(m, OTHER, now=LATER),
    "it falls due": lambda m: lifecycle.fall_due(m, QUEUE, now=LATER),
    "its lease expires": lambda m: lifecycle.expire_lease(m, QUEUE, now=LATER),
    "it expires": lambda m: lifecycle.expire(m, now=LATER),
}


def _extended(message: Message) -> Message:
    act = LeaseAct(lease=Lease(0, 1, 1, message.leased_at or 0), verb=Verb.EXTEND, now=LATER)
    return leases.apply(leases.as_noticed(act, message), message, QUEUE)


def outcome(verb: str, state: State) -> str:
    """The state it leads to, or the code of the refusal."""
    # Only the message that is to expire may have an expiry date: others would not be claimable.
    expires_at = LATER if verb == "it expires" else None
    message = a_message_in(state, expires_at=expires_at)
    try:
        return VERBS[verb](message).state.value
    except PenstockError as refusal:
        return refusal.code
