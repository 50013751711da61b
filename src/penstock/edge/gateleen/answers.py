"""Responses of gateleen that differ from those of the native API."""

from __future__ import annotations

from penstock.domain.errors import PenstockError, QueueFull, ShuttingDown, StoreUnavailable
from penstock.edge.server.errors import ErrorAnswer, ErrorBody, error_answer, error_response
from penstock.edge.server.request import Request, Response, json_response

TEXT = b"text/plain; charset=utf-8"


def is_out_of_space(error: PenstockError) -> bool:
    """Whether the queue is full or the store unavailable; another node may accept it."""
    if isinstance(error, ShuttingDown):
        return False
    return isinstance(error, QueueFull | StoreUnavailable)


def refuse(request: Request, error: PenstockError) -> Response:
    """Respond 500 if the queue accepts nothing; other errors as in the native API."""
    if type(error) is PenstockError:  # it has been logged
        return json_response(ErrorAnswer(ErrorBody(error.code, "internal error")), 500)
    if is_out_of_space(error):
        return json_response(error_answer(error), 500)
    return error_response(error)


def text(status: int, message: str = "") -> Response:
    return Response(status, message.encode(), content_type=TEXT)
