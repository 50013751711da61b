"""Text that every store and every wire format accepts."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.domain.text import sanitize


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_proper_text_stays_as_it_is(text: str) -> None:
    assert sanitize(text) == text


@given(st.text(st.characters(codec=None)))
def test_whatever_python_calls_a_text_can_be_sent_and_stored(text: str) -> None:
    kept = sanitize(text)

    assert kept.encode().decode() == kept
    assert "\0" not in kept


def test_unreadable_characters_are_replaced_visibly() -> None:
    assert sanitize("caf\udce9 \0 \U0001f600") == "caf\ufffd \ufffd \U0001f600"
