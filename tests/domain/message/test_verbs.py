"""Every verb on every state: the state it leads to, or the code of its rejection."""

import pytest

from penstock.domain.message.lifecycle import State
from tests.domain.message.verbs import VERBS, outcome

LOST = "lease_lost"
WRONG = "wrong_state"

WAITING, READY, LEASED, DONE, DEAD, CANCELLED = State

ALLOWED = {
    "claim": {READY: LEASED},
    "complete": {LEASED: DONE},
    "complete, late": {WAITING: DONE, READY: DONE, LEASED: DONE},
    "fail": {LEASED: WAITING},
    "release": {LEASED: READY},
    "snooze": {LEASED: WAITING},
    "extend": {LEASED: LEASED},
    "extend, late": {WAITING: LEASED, READY: LEASED, LEASED: LEASED},
    "extend, past its deadline": {LEASED: DEAD},
    "time out": {LEASED: DEAD},
    "crash": {LEASED: READY},
    "bury, by its holder": {LEASED: DEAD},
    "cancel, by its holder": {LEASED: CANCELLED},
    "bury, by an operator": {WAITING: DEAD, READY: DEAD},
    "complete, by an operator": {WAITING: DONE, READY: DONE},
    "cancel, by an operator": {WAITING: CANCELLED, READY: CANCELLED, DEAD: CANCELLED},
    "bury, by an operator, also while it runs": {WAITING: DEAD, READY: DEAD, LEASED: DEAD},
    "cancel, by an operator, also while it runs": {
        WAITING: CANCELLED,
        READY: CANCELLED,
        LEASED: CANCELLED,
        DEAD: CANCELLED,
    },
    "reschedule to later": {WAITING: WAITING, READY: WAITING},
    "reschedule to now": {WAITING: READY, READY: READY},
    "redrive": {DEAD: READY},
    "move to another queue": {READY: READY, DEAD: READY},
    "it falls due": {WAITING: READY},
    "its lease expires": {LEASED: READY},
    "it expires": {WAITING: CANCELLED, READY: CANCELLED},
}
REFUSAL = dict.fromkeys(ALLOWED, WRONG) | dict.fromkeys(
    ("complete", "fail", "release", "snooze", "extend", "bury, by its holder"), LOST
)
for verb in ("time out", "crash", "complete, late", "extend, late", "cancel, by its holder"):
    REFUSAL[verb] = LOST
REFUSAL["extend, past its deadline"] = LOST


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("verb", ALLOWED)
def test_every_verb_leads_where_it_should_or_is_refused(verb, state):
    allowed = ALLOWED[verb]

    assert outcome(verb, state) == allowed.get(state, REFUSAL[verb])


def test_no_verb_is_left_out():
    assert ALLOWED.keys() == VERBS.keys()
