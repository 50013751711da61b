"""The errors of SNS, with the codes that its SDKs map to exceptions."""

from __future__ import annotations

from penstock.domain import errors as core
from penstock.domain.bus.conditions import InvalidFilter
from penstock.domain.bus.topic import DedupKeyMissing, GroupMissing
from penstock.edge.aws.errors import AwsError, internal_failure, service_unavailable
from penstock.edge.server.errors import STATUS


def sns_error(code: str, message: str, *, status: int = 400) -> AwsError:
    return AwsError(code, code, message, status=status, sender=status < 500)


def invalid_parameter(what: str) -> AwsError:
    return sns_error("InvalidParameter", f"Invalid parameter: {what}")


def missing(name: str) -> AwsError:
    return invalid_parameter(f"{name} Reason: no value for required parameter")


def not_found(what: str) -> AwsError:
    """`what`: Topic or Subscription."""
    return sns_error("NotFound", f"{what} does not exist", status=404)


def resource_not_found() -> AwsError:
    return sns_error("ResourceNotFound", "Resource does not exist", status=404)


def invalid_value(message: str) -> AwsError:
    """Of a message attribute."""
    return sns_error("ParameterValueInvalid", message)


def tag_limit() -> AwsError:
    return sns_error(
        "TagLimitExceeded", "Could not complete request: tag quota of per resource exceeded"
    )


def empty_batch() -> AwsError:
    return sns_error("EmptyBatchRequest", "The batch request doesn't contain any entries.")


def too_many_entries() -> AwsError:
    text = "The batch request contains more entries than permissible."
    return sns_error("TooManyEntriesInBatchRequest", text)


def ids_not_distinct() -> AwsError:
    text = "Two or more batch entries in the request have the same Id."
    return sns_error("BatchEntryIdsNotDistinct", text)


def invalid_entry_id() -> AwsError:
    text = "The Id of a batch entry in a batch request doesn't abide by the specification."
    return sns_error("InvalidBatchEntryId", text)


def batch_too_long() -> AwsError:
    text = "The length of all the batch messages put together is more than the limit."
    return sns_error("BatchRequestTooLong", text)


_RENAMED = {
    "AccessDenied": "AuthorizationError",
    "InvalidParameterValue": "InvalidParameter",
    "MissingParameter": "InvalidParameter",
    "InternalFailure": "InternalError",
}


def from_core(error: Exception) -> AwsError:
    """An error of the core, or of what SNS has in common with SQS, in SNS's words."""
    if isinstance(error, AwsError):
        code = _RENAMED.get(error.code)
        return error if code is None else sns_error(code, error.message, status=error.status)
    match error:
        case GroupMissing():
            return invalid_parameter("The MessageGroupId parameter is required for FIFO topics")
        case DedupKeyMissing():
            return invalid_parameter(
                "The topic should either have ContentBasedDeduplication enabled or "
                "MessageDeduplicationId provided explicitly"
            )
        case InvalidFilter():
            return invalid_parameter(f"FilterPolicy: {error.reason}")
        case core.TopicNotFound():
            return not_found("Topic")
        case core.SubscriptionNotFound():
            return not_found("Subscription")
        case core.Forbidden():
            return sns_error("AuthorizationError", str(error), status=403)
        case core.QueueFull():
            return sns_error("Throttled", str(error), status=429)
        case core.InvalidRequest() | core.TooLarge() | core.Conflict() | core.NotFound():
            return invalid_parameter(str(error))
        case core.PenstockError() if _status(error) == 503:
            return service_unavailable()
    failure = internal_failure()
    return sns_error("InternalError", failure.message, status=500)


def _status(error: core.PenstockError) -> int:
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)
