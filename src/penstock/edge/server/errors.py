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

STATUS: dict[type[PenstockError], int] = {
    errors.PenstockError: 500,
    errors.InvalidRequest: 400,
    errors.InvalidUri: 400,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.QueueNotFound: 404,
    errors.MessageNotFound: 404,
    errors.TargetNotFound: 404,
    errors.MoveNotFound: 404,
    errors.TopicNotFound: 404,
    errors.SubscriptionNotFound: 404,
    errors.WorkerNotFound: 404,
    errors.ScheduleNotFound: 404,
    errors.RouteNotFound: 404,
    errors.CircuitNotFound: 404,
    errors.TableNotFound: 404,
    errors.FleetNotFound: 404,
    errors.QueueUnknown: 404,
    errors.MethodNotAllowed: 405,
    errors.Conflict: 409,
    errors.LeaseLost: 409,
    errors.ClaimNotRepeatable: 409,
    errors.WrongState: 409,
    errors.QueueExists: 409,
    errors.QueueNotEmpty: 409,
    errors.QueueFull: 409,
    errors.TopicNotEmpty: 409,
    errors.NotForDeliveries: 409,
    errors.MoveRunning: 409,
    errors.MoveNotRunning: 409,
    errors.WorkerGone: 409,
    errors.TooLarge: 413,
    errors.UnsupportedMediaType: 415,
    errors.TooManyWaiting: 429,
    errors.TooManyConnections: 503,
    errors.StoreUnavailable: 503,
    errors.TransactionBusy: 503,
    errors.ShuttingDown: 503,
    errors.StoreRefused: 503,
    errors.StoreDamaged: 503,
    errors.SourceUnavailable: 503,
    errors.ReplicasUnavailable: 503,
    errors.FleetNotWatched: 503,
    errors.FleetsRefused: 503,
    errors.DefaultProfileMissing: 503,
    errors.SourceUnknown: 503,
    errors.LakeRefused: 503,
}


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
