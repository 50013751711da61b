"""Bodies: how they are stored and measured, and which are rejected."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.edge.aws.errors import AwsError
from penstock.edge.sqs.rules import body


def raw(text: str, *, ascii_only: bool = True) -> msgspec.Raw:
    """As botocore encodes it, which escapes everything outside ASCII, or as others do."""
    return msgspec.Raw(json.dumps(text, ensure_ascii=ascii_only).encode())


ALLOWED = st.characters(
    exclude_categories=["Cs"], exclude_characters=[chr(n) for n in range(32)] + ["\ufffe", "\uffff"]
) | st.sampled_from("\t\n\r")


@given(st.text(ALLOWED, min_size=1), st.booleans())
def test_a_body_is_measured_as_meant_and_stored_as_json(text, ascii_only):
    found = body.read(raw(text, ascii_only=ascii_only))

    assert found.utf8 == text.encode()
    assert found.text == text
    assert json.loads(found.json) == text
    assert body.render(found.json) == found


def test_escapes_that_take_more_room_than_the_character_are_not_stored():
    assert body.read(raw("żółw")).json == '"żółw"'


def test_escapes_that_json_needs_are_stored_as_they_came():
    assert body.read(msgspec.Raw(b'"{\\"a\\":\\"\\/\\"}"')).json == '"{\\"a\\":\\"\\/\\"}"'


@pytest.mark.parametrize("sent", [b"", b"null", b'""'])
def test_an_empty_body_is_a_missing_parameter(sent):
    with pytest.raises(AwsError, match="must contain the parameter MessageBody") as caught:
        body.read(msgspec.Raw(sent))

    assert caught.value.code == "MissingParameter"


@pytest.mark.parametrize("sent", [b"7", b"{}", b"[1]", b"true"])
def test_a_body_that_is_not_a_string_is_rejected(sent):
    with pytest.raises(AwsError) as caught:
        body.read(msgspec.Raw(sent))

    assert caught.value.code == "SerializationException"


@pytest.mark.parametrize("character", ["\x00", "\x08", "\x0b", "\x0c", "\x1f", "\ufffe", "\uffff"])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("around", ["{}", "ż{}", '"{}', "a\\{}"])
def test_characters_that_xml_does_not_have_are_refused(character, ascii_only, around):
    sent = raw(around.format(character), ascii_only=ascii_only)

    with pytest.raises(AwsError, match=f"#x{ord(character):X}'") as caught:
        body.read(sent)

    assert caught.value.code == "InvalidMessageContents"


def test_bytes_that_are_not_utf8_are_refused():
    with pytest.raises(AwsError) as caught:
        body.read(msgspec.Raw(b'"\xff"'))

    assert caught.value.code == "InvalidMessageContents"


@pytest.mark.parametrize("stored", ['{"to":"ada"}', "7", "null", '["a\\n"]'])
def test_json_that_another_api_has_sent_is_shown_as_its_text(stored):
    found = body.render(stored)

    assert found.text == stored
    assert json.loads(found.json) == stored
    assert msgspec.json.encode(body.as_raw(found)) == found.json.encode()
