"""Everything at once in ordered queues, on two nodes of MariaDB: deadlocks are retried."""

from tests.store.postgres.test_stress import (
    orders,
    test_moves_acts_and_purges,
    test_purges_sends_claims_and_acts,
    test_redrives_acts_and_sweeps,
    test_removals_in_the_middle_of_everything,
)

__all__ = [
    "orders",
    "test_moves_acts_and_purges",
    "test_purges_sends_claims_and_acts",
    "test_redrives_acts_and_sweeps",
    "test_removals_in_the_middle_of_everything",
]
