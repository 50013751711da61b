"""The store: its contract on every backend, its writer, its migrations."""

import pytest

# Helpers that assert should say what they have found, as tests do.
pytest.register_assert_rewrite("tests.store.driver", "tests.store.machine", "tests.store.recount")
