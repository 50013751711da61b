"""Flows behave like the pure model, whatever becomes of their members and in which order."""

import pytest
from hypothesis.stateful import run_state_machine_as_test

from penstock.ports.store import Store
from tests.store.backends import every_backend
from tests.store.flow_machine import FlowMachine
from tests.store.test_state_machine import IS_FULL, PLAYS

__all__ = ["every_backend"]  # a fixture


@pytest.mark.timeout(7_200 if IS_FULL else 240)
def test_flows_and_the_model_agree_after_every_step(store: Store) -> None:
    # Every run has queues of its own in the same store: creating a store takes longer.
    class Machine(FlowMachine):
        pass

    Machine.store = store

    run_state_machine_as_test(Machine, settings=PLAYS)
