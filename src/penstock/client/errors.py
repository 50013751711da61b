"""Errors that a caller sees: rejections by the server, and missing answers."""

from __future__ import annotations

from penstock.domain.errors import InvalidRequest, PenstockError, all_errors


class Unreachable(ConnectionError):
    """No answer arrived.  With `was_sent`, the server may have executed the request."""

    code = "unreachable"

    def __init__(self, text: str, *, was_sent: bool) -> None:
        super().__init__(text)
        self.was_sent = was_sent


def refusal(code: str, text: str) -> PenstockError:
    """Build the error that the server raised, if its code is known here."""
    kind = {known.code: known for known in all_errors()}.get(code, PenstockError)
    # Some classes compose their own text; here the server's text is used.
    error = kind.__new__(kind)
    Exception.__init__(error, text if kind.code == code else f"{text} ({code})")
    return error


def no_transaction() -> InvalidRequest:
    return InvalidRequest(
        "tx= needs the store in the database of your transaction: "
        "open Penstock on the URL of that database, not on a server's"
    )
