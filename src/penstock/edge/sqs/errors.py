"""The errors of SQS with their names in both protocols and their texts.

SDKs choose the exception class by `shape` (JSON protocol), and programs compare the older `code`,
so both are part of the contract, as are the texts that clients are known to match.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from penstock.domain import errors as core
from penstock.edge.server.errors import STATUS

T = TypeVar("T")

MODELLED = "com.amazonaws.sqs#"
GENERIC = "com.amazon.coral.service#"
_OLD = "AWS.SimpleQueueService."

_CHARACTERS = "#x9 | #xA | #xD | [#x20-#xD7FF] | [#xE000-#xFFFD] | [#x10000-#x10FFFF]"


class SqsError(Exception):
    """An SQS error; each protocol renders it in its own form."""

    def __init__(
        self,
        shape: str,  # `__type` of the JSON protocol, with its namespace
        code: str,  # the name in the Query protocol
        message: str,
        *,
        status: int = 400,
        sender: bool = True,
        query_message: str | None = None,  # the text in the Query protocol, if it differs
    ) -> None:
        super().__init__(message)
        self.shape = shape
        self.code = code
        self.message = message
        self.status = status
        self.sender = sender
        self.query_message = message if query_message is None else query_message


def _model_error(shape: str, message: str, *, code: str = "", status: int = 400) -> SqsError:
    return SqsError(MODELLED + shape, code or shape, message, status=status)


def _prefixed_error(shape: str, message: str, *, status: int = 400) -> SqsError:
    """An error whose name in the Query protocol has a prefix."""
    return _model_error(shape, message, code=_OLD + shape, status=status)


def _generic(shape: str, code: str, message: str, *, status: int = 400) -> SqsError:
    """An error that all services of AWS have."""
    return SqsError(GENERIC + shape, code, message, status=status, sender=status < 500)


# --- queues ---


def queue_does_not_exist() -> SqsError:
    text = "The specified queue does not exist"
    return SqsError(
        f"{MODELLED}QueueDoesNotExist",
        f"{_OLD}NonExistentQueue",
        f"{text}.",
        query_message=f"{text} for this wsdl version.",
    )


def queue_name_exists(what: str) -> SqsError:
    """`what`: the attribute that differs."""
    text = f"A queue already exists with the same name and a different value for {what}"
    return _model_error("QueueNameExists", text, code="QueueAlreadyExists")


def queue_deleted_recently() -> SqsError:
    return _prefixed_error(
        "QueueDeletedRecently",
        "You must wait 60 seconds after deleting a queue before you can create another with the "
        "same name.",
    )


def purge_queue_in_progress(queue: str) -> SqsError:
    return _prefixed_error(
        "PurgeQueueInProgress",
        f"Only one PurgeQueue operation on {queue} is allowed every 60 seconds.",
        status=403,
    )


def invalid_attribute_name(message: str) -> SqsError:
    return _model_error("InvalidAttributeName", message)


def unknown_attribute(name: str) -> SqsError:
    return invalid_attribute_name(f"Unknown Attribute {name}.")


def invalid_attribute_value(name: str, reason: str = "") -> SqsError:
    text = f"Invalid value for the parameter {name}."
    return _model_error("InvalidAttributeValue", f"{text} Reason: {reason}" if reason else text)


# --- messages ---


def invalid_message_contents(character: str | None = None) -> SqsError:
    found = "An invalid binary character"
    if character is not None:
        found = f"Invalid binary character '#x{ord(character):X}'"
    text = f"{found} was found in the message body, the set of allowed characters is {_CHARACTERS}."
    return _model_error("InvalidMessageContents", text)


def receipt_handle_is_invalid(handle: str) -> SqsError:
    text = f'The input receipt handle "{handle}" is not a valid receipt handle.'
    return _model_error("ReceiptHandleIsInvalid", text)


def receipt_handle_of_another_queue(handle: str) -> SqsError:
    text = f'The receipt handle "{handle}" is not valid for this queue.'
    return _model_error("ReceiptHandleIsInvalid", text)


def over_limit(message: str) -> SqsError:
    return _model_error("OverLimit", message, status=403)


# --- batches ---


def empty_batch(entry: str) -> SqsError:
    """`entry`: the type of the entries, such as SendMessageBatchRequestEntry."""
    return _prefixed_error(
        "EmptyBatchRequest", f"There should be at least one {entry} in the request."
    )


def too_many_entries(sent: int, *, most: int) -> SqsError:
    return _prefixed_error(
        "TooManyEntriesInBatchRequest",
        f"Maximum number of entries per request are {most}. You have sent {sent}.",
    )


def batch_entry_ids_not_distinct(entry_id: str) -> SqsError:
    return _prefixed_error("BatchEntryIdsNotDistinct", f"Id {entry_id} repeated.")


def invalid_batch_entry_id() -> SqsError:
    return _prefixed_error(
        "InvalidBatchEntryId",
        "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
        "It can be at most 80 letters long.",
    )


def batch_request_too_long(sent: int, *, most: int) -> SqsError:
    return _prefixed_error(
        "BatchRequestTooLong",
        f"Batch requests cannot be longer than {most} bytes. You have sent {sent} bytes.",
    )


# --- any request ---


def resource_not_found(message: str) -> SqsError:
    return _model_error("ResourceNotFoundException", message, status=404)


def unsupported_operation(message: str) -> SqsError:
    return _prefixed_error("UnsupportedOperation", message)


def method_not_allowed(method: str) -> SqsError:
    return _prefixed_error(
        "UnsupportedOperation",
        f"Use POST or GET, not {method}.",
        status=405,
    )


def request_throttled(message: str) -> SqsError:
    return _model_error("RequestThrottled", message)


def invalid_parameter(message: str) -> SqsError:
    return _generic("InvalidParameterValueException", "InvalidParameterValue", message)


def invalid_value(value: object, parameter: str, reason: str) -> SqsError:
    """The text of most parameter errors."""
    return invalid_parameter(
        f"Value {value} for parameter {parameter} is invalid. Reason: {reason}"
    )


def missing_parameter(name: str) -> SqsError:
    return _generic(
        "MissingRequiredParameterException",
        "MissingParameter",
        f"The request must contain the parameter {name}.",
    )


def require(value: T | None, name: str) -> T:
    """Return a required value or raise MissingParameter; call it after looking up the queue."""
    if value is None:
        raise missing_parameter(name)
    return value


def invalid_action(action: str) -> SqsError:
    """The operation does not exist, or not at this path."""
    return _generic(
        "UnknownOperationException",
        "InvalidAction",
        f"The action {action} is not valid for this endpoint.",
    )


def serialization(message: str) -> SqsError:
    return _generic("SerializationException", "SerializationException", message)


def internal_failure() -> SqsError:
    return _generic(
        "InternalFailure",
        "InternalFailure",
        "The request processing has failed because of an unknown error, exception or failure.",
        status=500,
    )


def service_unavailable() -> SqsError:
    return _generic(
        "ServiceUnavailableException",
        "ServiceUnavailable",
        "The request has failed due to a temporary failure of the server.",
        status=503,
    )


# --- authentication ---


def missing_authentication_token() -> SqsError:
    return _refuse("MissingAuthenticationToken", "Request is missing Authentication Token")


def invalid_client_token_id() -> SqsError:
    return _refuse("InvalidClientTokenId", "The security token included in the request is invalid.")


def incomplete_signature(message: str) -> SqsError:
    return _refuse("IncompleteSignature", message)


def signature_does_not_match(message: str = "") -> SqsError:
    return _refuse(
        "SignatureDoesNotMatch",
        message
        or "The request signature we calculated does not match the signature you provided. Check "
        "your AWS Secret Access Key and signing method. Consult the service documentation for "
        "details.",
        shape="InvalidSignature",  # the JavaScript SDK detects a wrong clock by this code
    )


def access_denied(message: str) -> SqsError:
    return _refuse("AccessDenied", message)


def _refuse(code: str, message: str, *, shape: str = "") -> SqsError:
    return _generic(f"{shape or code}Exception", code, message, status=403)


# --- errors of the core ---


def from_core(error: Exception) -> SqsError:
    """Translate a core error; operations that know more details translate it themselves."""
    if isinstance(error, SqsError):
        return error
    translate = next((_FROM_CORE[kind] for kind in type(error).__mro__ if kind in _FROM_CORE), None)
    return internal_failure() if translate is None else translate(str(error))


# By class; the nearest base class counts.
_FROM_CORE: dict[type, Callable[[str], SqsError]] = {
    core.InvalidRequest: invalid_parameter,
    core.Unauthenticated: lambda text: invalid_client_token_id(),
    core.Forbidden: access_denied,
    core.NotFound: resource_not_found,
    core.QueueNotFound: lambda text: queue_does_not_exist(),
    core.MethodNotAllowed: unsupported_operation,
    core.Conflict: unsupported_operation,
    core.ClaimNotRepeatable: invalid_parameter,
    core.MoveRunning: invalid_parameter,
    core.MoveNotRunning: invalid_parameter,
    core.LeaseLost: lambda text: _model_error("ReceiptHandleIsInvalid", text),
    core.QueueExists: lambda text: _model_error("QueueNameExists", text, code="QueueAlreadyExists"),
    core.QueueFull: over_limit,
    core.TooLarge: lambda text: invalid_parameter(
        f"One or more parameters are invalid. Reason: {text}"
    ),
    core.UnsupportedMediaType: serialization,
    core.TooManyWaiting: request_throttled,
} | {error: lambda text: service_unavailable() for error, status in STATUS.items() if status == 503}
