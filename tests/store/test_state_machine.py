"""A store behaves like the pure model, whatever the calls and their order."""

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from penstock.ports.store import Store
from tests.store.backends import every_backend
from tests.store.machine import StoreMachine

__all__ = ["every_backend"]  # a fixture

IS_FULL = os.environ.get("PENSTOCK_FAULTS") == "full"

PLAYS = settings(
    max_examples=2_000 if IS_FULL else 25,
    stateful_step_count=60 if IS_FULL else 30,
    deadline=None,
    # Shrinking a failing run takes minutes; unshrunk, it can be read and repeated.
    phases=list(Phase) if IS_FULL else [Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.timeout(7_200 if IS_FULL else 240)
def test_a_store_and_the_model_agree_after_every_step(store: Store) -> None:
    # Every run has queues of its own in the same store: creating a store takes longer.
    class Machine(StoreMachine):
        pass

    Machine.store = store

    run_state_machine_as_test(Machine, settings=PLAYS)
