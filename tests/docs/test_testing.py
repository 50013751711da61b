"""The page about testing is a test that passes."""

from __future__ import annotations

import pytest

from tests.docs.snippets import marked

pytest_plugins = ["pytester"]


def test_the_example_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(marked("docs/testing.md", "testing"))

    pytester.runpytest_subprocess().assert_outcomes(passed=2)
