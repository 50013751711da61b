"""The example of the page about testing passes."""

from __future__ import annotations

import pytest

from tests.docs.snippets import read_blocks

pytest_plugins = ["pytester"]


def test_the_example_passes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(read_blocks("docs/testing.md", "testing"))

    pytester.runpytest_subprocess().assert_outcomes(passed=2)
