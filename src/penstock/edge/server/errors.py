"""Errors as HTTP responses.  Every domain error has a status, which a test checks."""

from __future__ import annotations

import logging
from typing import Annotated

import msgspec

from penstock.api.operation import about
from penstock.domain import errors
from penstock.domain.errors import PenstockError
from penstock.edge.server.request import Response, json_response

_log = logging.getLogger("penstock.http")

RETRY_AFTER_S = b"1"

# By class; the nearest base class counts.
_STATUS: dict[type, int] = {
    errors.PenstockError: 500,
    errors.InvalidRequest: 400,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.MethodNotAllowed: 405,
    errors.Conflict: 409,
    errors.TooLarge: 413,
    errors.UnsupportedMediaType: 415,
    errors.TooManyWaiting: 429,
    errors.TooManyConnections: 503,
    errors.StoreUnavailable: 503,
    errors.StoreRefused: 503,
    errors.SourceUnavailable: 503,
    errors.ReplicasUnavailable: 503,
    errors.FleetNotWatched: 503,
    errors.FleetsRefused: 503,
    errors.LakeRefused: 503,
    errors.LakeUnreachable: 503,
    errors.FileUnreadable: 503,
    errors.FilesChanged: 409,
}


def _status_of(error: type[PenstockError]) -> int:
    return next(_STATUS[kind] for kind in error.__mro__ if kind in _STATUS)


STATUS = {error: _status_of(error) for error in errors.all_errors()}


class ErrorBody(msgspec.Struct, frozen=True):
    code: Annotated[str, about("A stable code that programs may rely on.")]
    message: Annotated[str, about("An explanation for people; its wording may change.")]


class ErrorAnswer(msgspec.Struct, frozen=True):
    error: Annotated[ErrorBody, about("What went wrong.")]


def error_answer(error: PenstockError) -> ErrorAnswer:
    # Internal details go to the log; in a response they would only help an attacker.
    if isinstance(error, errors.OutcomeUnknown):
        text = "the store did not respond in time; the request may have been executed"
        return ErrorAnswer(ErrorBody(error.code, text))
    if errors.kind_of(error) is errors.StoreUnavailable:  # the store has logged it
        return ErrorAnswer(ErrorBody(error.code, "the store is unavailable; try again"))
    if type(error) is not PenstockError:
        return ErrorAnswer(ErrorBody(error.code, str(error)))
    _log.error("request failed: %s", error, exc_info=error.__cause__ or error)
    return ErrorAnswer(ErrorBody(error.code, "internal error"))


def unexpected(error: Exception) -> Response:
    """Log an unexpected exception with its traceback; the client sees only `internal`."""
    wrapped = PenstockError(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return error_response(wrapped)


def error_response(error: PenstockError) -> Response:
    response = json_response(error_answer(error), STATUS[errors.kind_of(error)])
    if isinstance(error, errors.MethodNotAllowed):
        response.headers = ((b"allow", ", ".join(error.allowed).encode()),)
    elif isinstance(error, errors.Unauthenticated):
        response.headers = ((b"www-authenticate", b"Bearer"),)
    elif isinstance(error, errors.StoreUnavailable):
        response.headers = ((b"retry-after", RETRY_AFTER_S),)
    return response
