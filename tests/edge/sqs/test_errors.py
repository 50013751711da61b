"""Errors in the wording of SQS."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import botocore
import pytest

from penstock.domain import errors as core
from penstock.edge.aws import errors as aws
from penstock.edge.aws.errors import AwsError
from penstock.edge.sqs import errors
from penstock.store.database import WriteLockTimeout

ONE_OF_EACH = [
    errors.queue_does_not_exist(),
    errors.queue_name_exists("DelaySeconds"),
    errors.queue_deleted_recently(),
    errors.purge_queue_in_progress("mail"),
    errors.unknown_attribute("X"),
    errors.invalid_attribute_value("X"),
    errors.invalid_message_contents("\x01"),
    errors.receipt_handle_is_invalid("h"),
    errors.over_limit("too many"),
    errors.empty_batch("SendMessageBatchRequestEntry"),
    errors.too_many_entries(11, most=10),
    errors.batch_entry_ids_not_distinct("a"),
    errors.invalid_batch_entry_id(),
    errors.batch_request_too_long(1048577, most=1048576),
    errors.resource_not_found("no task"),
    errors.unsupported_operation("no"),
    errors.request_throttled("slow down"),
]


@pytest.fixture(scope="module")
def service_model() -> dict[str, Any]:
    folder = Path(botocore.__file__).parent / "data" / "sqs" / "2012-11-05"
    model: dict[str, Any] = json.loads(gzip.decompress((folder / "service-2.json.gz").read_bytes()))
    return model


@pytest.mark.parametrize("error", ONE_OF_EACH, ids=lambda error: error.shape)
def test_a_modelled_refusal_is_one_that_sdks_have_a_class_for(service_model, error):
    space, _, shape = error.shape.partition("#")

    assert space == "com.amazonaws.sqs"
    assert service_model["shapes"][shape]["exception"]


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (errors.queue_does_not_exist(), "AWS.SimpleQueueService.NonExistentQueue", 400),
        (errors.queue_name_exists("X"), "QueueAlreadyExists", 400),
        (
            errors.purge_queue_in_progress("q"),
            "AWS.SimpleQueueService.PurgeQueueInProgress",
            403,
        ),
        (errors.over_limit("x"), "OverLimit", 403),
        (errors.resource_not_found("x"), "ResourceNotFoundException", 404),
        (aws.invalid_parameter("x"), "InvalidParameterValue", 400),
        (errors.missing_parameter("x"), "MissingParameter", 400),
        (aws.invalid_action("x"), "InvalidAction", 400),
        (aws.access_denied("x"), "AccessDenied", 403),
        (aws.invalid_client_token_id(), "InvalidClientTokenId", 403),
        (aws.internal_failure(), "InternalFailure", 500),
        (aws.service_unavailable(), "ServiceUnavailable", 503),
    ],
    ids=lambda value: value.code if isinstance(value, AwsError) else None,
)
def test_a_refusal_has_the_code_and_the_status_that_programs_compare_with(error, code, status):
    assert (error.code, error.status) == (code, status)
    assert error.sender is (status < 500)


def test_a_missing_queue_is_worded_differently_in_the_older_protocol():
    error = errors.queue_does_not_exist()

    assert error.message == "The specified queue does not exist."
    assert error.query_message == "The specified queue does not exist for this wsdl version."


def test_a_forbidden_character_is_named():
    assert "'#xFFFE' was found" in errors.invalid_message_contents("\ufffe").message


@pytest.mark.parametrize(
    "kind", [kind for kind in core.all_errors() if kind is not core.PenstockError]
)
def test_every_refusal_of_the_core_has_a_word_in_sqs(kind):
    assert errors.from_core(kind.__new__(kind)).code != "InternalFailure"


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (core.QueueNotFound("mail"), "AWS.SimpleQueueService.NonExistentQueue", 400),
        (core.ShuttingDown("bye"), "ServiceUnavailable", 503),
        (core.StoreUnavailable("disk"), "ServiceUnavailable", 503),
        (WriteLockTimeout("wait"), "ServiceUnavailable", 503),
        (core.Unauthenticated("who"), "InvalidClientTokenId", 403),
        (core.Forbidden("no"), "AccessDenied", 403),
        (core.TooLarge("big"), "InvalidParameterValue", 400),
        (core.LeaseLost(), "ReceiptHandleIsInvalid", 400),
        (core.PenstockError("secret"), "InternalFailure", 500),
        (ZeroDivisionError("secret"), "InternalFailure", 500),
    ],
)
def test_a_refusal_of_the_core_becomes_the_one_that_sqs_would_give(error, code, status):
    found = errors.from_core(error)

    assert (found.code, found.status) == (code, status)
    assert "secret" not in found.message


def test_a_refusal_of_sqs_stays_what_it_is():
    error = errors.over_limit("too many")

    assert errors.from_core(error) is error


def test_a_needed_member_is_given_back_or_named():
    assert errors.require("", "Label") == ""
    with pytest.raises(AwsError, match="must contain the parameter Label"):
        errors.require(None, "Label")
