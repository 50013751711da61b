"""The page about the lifecycle agrees with the code."""

import re

from penstock.domain.message.lifecycle import (
    EXHAUSTED,
    EXPIRED,
    PURGED,
    QUARANTINED,
    TIMED_OUT,
    State,
)
from tests.docs.snippets import ROOT
from tests.domain.message.verbs import VERBS, outcome

PAGE = (ROOT / "docs" / "lifecycle.md").read_text(encoding="utf-8")


def read_rows() -> dict[str, list[str]]:
    """The table of verbs: each with its outcomes, in the order of the columns."""
    section = PAGE.partition("## Every verb on every state")[2].partition("\n## ")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("|")
    ]
    return {name: outcomes for name, *outcomes in cells if not name.startswith("-")}


def test_the_columns_are_the_states() -> None:
    assert read_rows()["verb"] == [state.value for state in State]


def test_the_table_of_verbs_is_what_the_lifecycle_does() -> None:
    written = {verb: outcomes for verb, outcomes in read_rows().items() if verb != "verb"}

    assert written == {verb: [outcome(verb, state) for state in State] for verb in VERBS}


def test_every_reason_the_page_quotes_is_given_by_the_lifecycle() -> None:
    quoted = set(re.findall(r"reason\s+`(\w+)`", PAGE))

    assert quoted == {EXHAUSTED, EXPIRED, PURGED, TIMED_OUT, QUARANTINED}
