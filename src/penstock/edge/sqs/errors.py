"""The errors of SQS with their names in both protocols and their texts.

SDKs choose the exception class by `shape` (JSON protocol), and programs compare the older `code`,
so both are part of the contract, as are the texts that clients are known to match.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from penstock.domain import errors as core
from penstock.edge.aws.errors import (
    AwsError,
    access_denied,
    generic,
    internal_failure,
    invalid_client_token_id,
    invalid_parameter,
    serialization,
    service_unavailable,
)
from penstock.edge.server.errors import STATUS

T = TypeVar("T")

MODELLED = "com.amazonaws.sqs#"
_OLD = "AWS.SimpleQueueService."

_CHARACTERS = "#x9 | #xA | #xD | [#x20-#xD7FF] | [#xE000-#xFFFD] | [#x10000-#x10FFFF]"


def _model_error(shape: str, message: str, *, code: str = "", status: int = 400) -> AwsError:
    return AwsError(MODELLED + shape, code or shape, message, status=status)


def _prefixed_error(shape: str, message: str, *, status: int = 400) -> AwsError:
    """An error whose name in the Query protocol has a prefix."""
    return _model_error(shape, message, code=_OLD + shape, status=status)


# --- queues ---


def queue_does_not_exist() -> AwsError:
    text = "The specified queue does not exist"
    return AwsError(
        f"{MODELLED}QueueDoesNotExist",
        f"{_OLD}NonExistentQueue",
        f"{text}.",
        query_message=f"{text} for this wsdl version.",
    )


def queue_name_exists(what: str) -> AwsError:
    """`what`: the attribute that differs."""
    text = f"A queue already exists with the same name and a different value for {what}"
    return _model_error("QueueNameExists", text, code="QueueAlreadyExists")


def queue_deleted_recently() -> AwsError:
    return _prefixed_error(
        "QueueDeletedRecently",
        "You must wait 60 seconds after deleting a queue before you can create another with the "
        "same name.",
    )


def purge_queue_in_progress(queue: str) -> AwsError:
    return _prefixed_error(
        "PurgeQueueInProgress",
        f"Only one PurgeQueue operation on {queue} is allowed every 60 seconds.",
        status=403,
    )


def invalid_attribute_name(message: str) -> AwsError:
    return _model_error("InvalidAttributeName", message)


def unknown_attribute(name: str) -> AwsError:
    return invalid_attribute_name(f"Unknown Attribute {name}.")


def invalid_attribute_value(name: str, reason: str = "") -> AwsError:
    text = f"Invalid value for the parameter {name}."
    return _model_error("InvalidAttributeValue", f"{text} Reason: {reason}" if reason else text)


# --- messages ---


def invalid_message_contents(character: str | None = None) -> AwsError:
    found = "An invalid binary character"
    if character is not None:
        found = f"Invalid binary character '#x{ord(character):X}'"
    text = f"{found} was found in the message body, the set of allowed characters is {_CHARACTERS}."
    return _model_error("InvalidMessageContents", text)


def receipt_handle_is_invalid(handle: str) -> AwsError:
    text = f'The input receipt handle "{handle}" is not a valid receipt handle.'
    return _model_error("ReceiptHandleIsInvalid", text)


def receipt_handle_of_another_queue(handle: str) -> AwsError:
    text = f'The receipt handle "{handle}" is not valid for this queue.'
    return _model_error("ReceiptHandleIsInvalid", text)


def over_limit(message: str) -> AwsError:
    return _model_error("OverLimit", message, status=403)


# --- batches ---


def empty_batch(entry: str) -> AwsError:
    """`entry`: the type of the entries, such as SendMessageBatchRequestEntry."""
    return _prefixed_error(
        "EmptyBatchRequest", f"There should be at least one {entry} in the request."
    )


def too_many_entries(sent: int, *, most: int) -> AwsError:
    return _prefixed_error(
        "TooManyEntriesInBatchRequest",
        f"Maximum number of entries per request are {most}. You have sent {sent}.",
    )


def batch_entry_ids_not_distinct(entry_id: str) -> AwsError:
    return _prefixed_error("BatchEntryIdsNotDistinct", f"Id {entry_id} repeated.")


def invalid_batch_entry_id() -> AwsError:
    return _prefixed_error(
        "InvalidBatchEntryId",
        "A batch entry id can only contain alphanumeric characters, hyphens and underscores. "
        "It can be at most 80 letters long.",
    )


def batch_request_too_long(sent: int, *, most: int) -> AwsError:
    return _prefixed_error(
        "BatchRequestTooLong",
        f"Batch requests cannot be longer than {most} bytes. You have sent {sent} bytes.",
    )


# --- any request ---


def resource_not_found(message: str) -> AwsError:
    return _model_error("ResourceNotFoundException", message, status=404)


def unsupported_operation(message: str) -> AwsError:
    return _prefixed_error("UnsupportedOperation", message)


def method_not_allowed(method: str) -> AwsError:
    return _prefixed_error(
        "UnsupportedOperation",
        f"Use POST or GET, not {method}.",
        status=405,
    )


def request_throttled(message: str) -> AwsError:
    return _model_error("RequestThrottled", message)


def missing_parameter(name: str) -> AwsError:
    return generic(
        "MissingRequiredParameterException",
        "MissingParameter",
        f"The request must contain the parameter {name}.",
    )


def require(value: T | None, name: str) -> T:
    """Return a required value or raise MissingParameter; call it after looking up the queue."""
    if value is None:
        raise missing_parameter(name)
    return value


# --- errors of the core ---


def from_core(error: Exception) -> AwsError:
    """Translate a core error; operations that know more details translate it themselves."""
    if isinstance(error, AwsError):
        return error
    translate = next((_FROM_CORE[kind] for kind in type(error).__mro__ if kind in _FROM_CORE), None)
    return internal_failure() if translate is None else translate(str(error))


# By class; the nearest base class counts.
_FROM_CORE: dict[type, Callable[[str], AwsError]] = {
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
