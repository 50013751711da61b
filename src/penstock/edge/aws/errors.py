"""Errors that all APIs of AWS have, with their names in both protocols and their texts."""

from __future__ import annotations

GENERIC = "com.amazon.coral.service#"


class AwsError(Exception):
    """An error of one of AWS's APIs; each protocol renders it in its own form."""

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


def generic(shape: str, code: str, message: str, *, status: int = 400) -> AwsError:
    """An error that all services of AWS have."""
    return AwsError(GENERIC + shape, code, message, status=status, sender=status < 500)


def invalid_parameter(message: str) -> AwsError:
    return generic("InvalidParameterValueException", "InvalidParameterValue", message)


def invalid_value(value: object, parameter: str, reason: str) -> AwsError:
    """The text of most parameter errors."""
    return invalid_parameter(
        f"Value {value} for parameter {parameter} is invalid. Reason: {reason}"
    )


def invalid_action(action: str) -> AwsError:
    """The operation does not exist, or not at this path."""
    return generic(
        "UnknownOperationException",
        "InvalidAction",
        f"The action {action} is not valid for this endpoint.",
    )


def serialization(message: str) -> AwsError:
    return generic("SerializationException", "SerializationException", message)


def internal_failure() -> AwsError:
    return generic(
        "InternalFailure",
        "InternalFailure",
        "The request processing has failed because of an unknown error, exception or failure.",
        status=500,
    )


def service_unavailable() -> AwsError:
    return generic(
        "ServiceUnavailableException",
        "ServiceUnavailable",
        "The request has failed due to a temporary failure of the server.",
        status=503,
    )


# --- authentication ---


def missing_authentication_token() -> AwsError:
    return _refuse("MissingAuthenticationToken", "Request is missing Authentication Token")


def invalid_client_token_id() -> AwsError:
    return _refuse("InvalidClientTokenId", "The security token included in the request is invalid.")


def incomplete_signature(message: str) -> AwsError:
    return _refuse("IncompleteSignature", message)


def signature_does_not_match(message: str = "") -> AwsError:
    return _refuse(
        "SignatureDoesNotMatch",
        message
        or "The request signature we calculated does not match the signature you provided. Check "
        "your AWS Secret Access Key and signing method. Consult the service documentation for "
        "details.",
        shape="InvalidSignature",  # the JavaScript SDK detects a wrong clock by this code
    )


def access_denied(message: str) -> AwsError:
    return _refuse("AccessDenied", message)


def _refuse(code: str, message: str, *, shape: str = "") -> AwsError:
    return generic(f"{shape or code}Exception", code, message, status=403)
