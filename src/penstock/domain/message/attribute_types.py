"""Types of a message's attributes, which are strings: kept in one more attribute, as JSON.

Only the SQS and SNS APIs set them; their senders cannot use the prefix of these names.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

TYPES = "AWS.types"  # names and data types of all but plain strings
SUBJECT = "AWS.subject"  # of an event that the SNS API published
STRING = "String"
_decode = msgspec.json.Decoder(dict[str, str]).decode


def types_of(attributes: Mapping[str, str]) -> dict[str, str]:
    """The data types by name; what another API stored in a wrong form is ignored."""
    given = attributes.get(TYPES)
    if given is None:
        return {}
    try:
        return _decode(given)
    except (msgspec.DecodeError, UnicodeError):
        return {}
