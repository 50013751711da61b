"""The store: its contract on every backend, its writer, its migrations."""

import pytest

# Assertions of helper modules are rewritten, so that they show what they have found.
pytest.register_assert_rewrite(
    "tests.store.driver", "tests.store.machine", "tests.store.counter_checks"
)
