"""What can go wrong for a caller: refusals by the server, and no answer at all."""

from __future__ import annotations

from penstock.domain.errors import InvalidRequest, PenstockError, all_errors


class Unreachable(ConnectionError):
    """No answer came.  With `was_sent`, the server may have done what it was asked to do."""

    code = "unreachable"

    def __init__(self, text: str, *, was_sent: bool) -> None:
        super().__init__(text)
        self.was_sent = was_sent


def refusal(code: str, text: str) -> PenstockError:
    """The error that the server raised, as far as its code is known here."""
    kind = {known.code: known for known in all_errors()}.get(code, PenstockError)
    # Some classes word their text themselves; here the words are the server's.
    error = kind.__new__(kind)
    Exception.__init__(error, text if kind.code == code else f"{text} ({code})")
    return error


def no_transaction() -> InvalidRequest:
    return InvalidRequest(
        "tx= needs the store in the database of your transaction: "
        "open Penstock on the URL of that database, not on a server's"
    )
