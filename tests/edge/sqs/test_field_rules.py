"""Rules for ids, numbers, batches, names and message attributes, with AWS's texts."""

from __future__ import annotations

import pytest

from penstock.edge.aws.errors import AwsError
from penstock.edge.sqs import errors
from penstock.edge.sqs.rules import content, message_attributes, names
from penstock.edge.sqs.wire.model import (
    BatchResultErrorEntry,
    DeleteMessageBatchRequestEntry,
    MessageAttributeValue,
    SendMessageBatchRequestEntry,
)


def refusal(check, *args, **named) -> AwsError:
    with pytest.raises(AwsError) as caught:
        check(*args, **named)
    return caught.value


def a_text(value: str | None = "x", data_type: str | None = "String") -> MessageAttributeValue:
    return MessageAttributeValue(StringValue=value, DataType=data_type)


# --- numbers, ids, sizes ---


@pytest.mark.parametrize(
    ("check", "good", "bad", "text"),
    [
        (
            content.check_max_messages,
            (1, 10),
            (0, 11, -1),
            "Value {} for parameter MaxNumberOfMessages is invalid. "
            "Reason: Must be between 1 and 10, if provided.",
        ),
        (
            content.check_wait_time,
            (0, 20),
            (-1, 21),
            "Value {} for parameter WaitTimeSeconds is invalid. "
            "Reason: Must be >= 0 and <= 20, if provided.",
        ),
        (
            content.check_visibility_timeout,
            (0, 43200),
            (-1, 43201),
            "Value {} for parameter VisibilityTimeout is invalid. "
            "Reason: Must be >= 0 and <= 43200, if provided.",
        ),
        (
            content.check_delay,
            (0, 900),
            (-1, 901),
            "Value {} for parameter DelaySeconds is invalid. "
            "Reason: DelaySeconds must be >= 0 and <= 900.",
        ),
    ],
)
def test_a_number_is_taken_within_its_range_and_refused_outside(check, good, bad, text):
    for value in good:
        check(value)
    for value in bad:
        error = refusal(check, value)
        assert (error.code, error.message) == ("InvalidParameterValue", text.format(value))


def test_results_asked_for_are_at_least_one():
    content.check_max_results(1000, most=1000)

    assert "between 1 and 1000" in refusal(content.check_max_results, 0, most=1000).message
    assert "MaxResults" in refusal(content.check_max_results, 1001, most=1000).message


@pytest.mark.parametrize(
    "parameter", ["MessageGroupId", "MessageDeduplicationId", "ReceiveRequestAttemptId"]
)
def test_ids_are_letters_digits_and_punctuation(parameter):
    content.check_id(parameter, "aZ09!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
    content.check_id(parameter, "x" * 128)
    for bad in ("", "a b", "x" * 129, "ż", "a\n"):
        assert refusal(content.check_id, parameter, bad).message == (
            f"Value {bad} for parameter {parameter} is invalid. Reason: {parameter} can only "
            "include alphanumeric and punctuation characters. 1 to 128 in length."
        )


def test_the_error_for_a_large_message_names_the_limit():
    assert content.too_large(1024).message == (
        "One or more parameters are invalid. Reason: Message must be shorter than 1024 bytes."
    )
    assert content.entry_too_large(1024).message == (
        "One or more parameters cannot be validated. "
        "Reason: Message must be shorter than 1024 bytes."
    )


# --- batches ---


def entries(*ids: str | None) -> list[DeleteMessageBatchRequestEntry]:
    return [DeleteMessageBatchRequestEntry(Id=entry_id) for entry_id in ids]


def check_batch(given):
    return content.check_entries(given, DeleteMessageBatchRequestEntry)


def test_a_batch_of_one_to_ten_distinct_ids_is_taken():
    ten = entries(*(f"id_{n}-" for n in range(10)))

    assert check_batch(ten) is ten


@pytest.mark.parametrize(
    ("given", "code", "text"),
    [
        (
            None,
            "EmptyBatchRequest",
            "There should be at least one DeleteMessageBatchRequestEntry in the request.",
        ),
        (
            [],
            "EmptyBatchRequest",
            "There should be at least one DeleteMessageBatchRequestEntry in the request.",
        ),
        (
            entries(*"abcdefghijk"),
            "TooManyEntriesInBatchRequest",
            "Maximum number of entries per request are 10. You have sent 11.",
        ),
        (
            entries("id_1", "id_2", "id_3", "id_2", "id_1"),
            "BatchEntryIdsNotDistinct",
            "Id id_2 repeated.",
        ),
        (entries("a b"), "InvalidBatchEntryId", None),
        (entries(""), "InvalidBatchEntryId", None),
        (entries("x" * 81), "InvalidBatchEntryId", None),
        (entries("a\n"), "InvalidBatchEntryId", None),
    ],
)
def test_a_batch_is_refused_as_a_whole(given, code, text):
    error = refusal(check_batch, given)

    assert error.code == f"AWS.SimpleQueueService.{code}"
    assert text is None or error.message == text


def test_an_entry_without_an_id_is_a_missing_parameter():
    assert refusal(check_batch, entries("a", None)).message == (
        "The request must contain the parameter DeleteMessageBatchRequestEntry.2.Id."
    )


def test_a_batch_of_sends_is_called_so():
    error = refusal(content.check_entries, [], SendMessageBatchRequestEntry)

    assert "at least one SendMessageBatchRequestEntry" in error.message


def test_a_batch_has_at_most_a_mebibyte():
    content.check_batch_size(1048576)

    assert refusal(content.check_batch_size, 1048577).message == (
        "Batch requests cannot be longer than 1048576 bytes. You have sent 1048577 bytes."
    )


def test_a_failed_entry_has_the_code_of_the_query_protocol():
    error = errors.receipt_handle_is_invalid("h")

    assert content.failed("a", error) == BatchResultErrorEntry(
        "a",
        True,
        "ReceiptHandleIsInvalid",
        'The input receipt handle "h" is not a valid receipt handle.',
    )


# --- message attributes ---


def test_attributes_count_with_name_type_and_value():
    size = message_attributes.check(
        {
            "ż": a_text("é", "String.x"),
            "n": a_text("1", "Number"),
            "b": MessageAttributeValue(DataType="Binary", BinaryValue=b"\x00\xff"),
        }
    )

    assert size == (2 + 8 + 2) + (1 + 6 + 1) + (1 + 6 + 2)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("a", a_text(""), "Message (user) attribute 'a' must contain a non-empty value of type "),
        ("a", a_text(None), "must contain a non-empty value of type 'String'."),
        ("a", MessageAttributeValue(DataType="Binary"), "non-empty value of type 'Binary'."),
        ("a", a_text("x", "Binary"), "non-empty value of type 'Binary'."),
        ("a", a_text("x", "Number"), "Can't cast the value of message (user) attribute 'a' to a "),
        ("a", a_text("1e127", "Number"), "should be in range"),
        ("a", a_text("-1e-129", "Number"), "should be in range"),
        ("a", a_text("1" * 39, "Number"), "should be in range"),
        ("a", a_text("NaN", "Number"), "to a number"),
        ("a", a_text("Infinity", "Number"), "to a number"),
        ("a", a_text("1_0", "Number"), "to a number"),
        ("a", a_text("x", None), "must contain non-empty message attribute type."),
        (
            "a",
            a_text("x", "Text"),
            "The message attribute 'a' has an invalid message attribute type, the set of "
            "supported type prefixes is Binary, Number, and String.",
        ),
        ("a", a_text("x", "Stringy"), "has an invalid message attribute type"),
        ("a", a_text("x", "String."), "has an invalid message attribute type"),
        ("a", a_text("x", "String." + "x" * 250), "has an invalid message attribute type"),
        ("a", a_text("\x01"), "#x1"),
        ("", a_text(), "1 to 256 characters"),
        ("x" * 257, a_text(), "1 to 256 characters"),
        ("a b", a_text(), "The message attribute name 'a b' is invalid."),
        (".a", a_text(), "is invalid"),
        ("a.", a_text(), "is invalid"),
        ("a..b", a_text(), "is invalid"),
        ("aws.a", a_text(), "reserved for internal use"),
        ("AMAZON.a", a_text(), "reserved for internal use"),
    ],
)
def test_a_bad_attribute_is_an_invalid_parameter(name, value, text):
    error = refusal(message_attributes.check, {name: value})

    assert error.code == "InvalidParameterValue"
    assert text in error.message


@pytest.mark.parametrize("text", ["0", "-1.5", "+7", ".5", "5.", "1e126", "1E-128", "0" * 60 + "1"])
def test_numbers_are_accepted_in_all_their_spellings(text):
    message_attributes.check({"n": a_text(text, "Number.int")})


@pytest.mark.parametrize("name", ["awsome", "a.b-c_D9", "ø"])
def test_names_that_only_look_forbidden_are_taken(name):
    message_attributes.check({name: a_text()})


def test_there_are_at_most_ten_attributes():
    message_attributes.check({f"a{n}": a_text() for n in range(10)})

    error = refusal(message_attributes.check, {f"a{n}": a_text() for n in range(11)})

    assert error.message == "Number of message attributes [11] exceeds the allowed maximum [10]."


def test_lists_of_values_are_not_supported():
    value = MessageAttributeValue(DataType="String", StringListValues=["x"])

    error = refusal(message_attributes.check, {"a": value})

    assert error.code == "AWS.SimpleQueueService.UnsupportedOperation"


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (None, ""),
        ([], ""),
        (["All"], "foo.a foo.b bar"),
        ([".*"], "foo.a foo.b bar"),
        (["x", "*"], "foo.a foo.b bar"),
        (["foo.*"], "foo.a foo.b"),
        (["bar", "foo.a", "x", "a b", ""], "foo.a bar"),
        (["ba"], ""),
    ],
)
def test_a_receiver_gets_the_attributes_it_asks_for(names, found):
    sent = {name: a_text() for name in ("foo.a", "foo.b", "bar")}

    assert list(message_attributes.chosen(sent, names)) == found.split()


def test_the_trace_header_is_the_only_system_attribute():
    assert message_attributes.check_system({"AWSTraceHeader": a_text("Root=1")}) == "Root=1"
    assert message_attributes.check_system({}) is None
    for bad in ({"SenderId": a_text()}, {"AWSTraceHeader": a_text("1", "Number")}):
        assert refusal(message_attributes.check_system, bad).code == "InvalidParameterValue"
    message_attributes.check_system({"AWSTraceHeader": a_text("x" * 1024)})
    long = refusal(message_attributes.check_system, {"AWSTraceHeader": a_text("x" * 1025)})
    assert "at most 1024 characters" in long.message
    empty = refusal(message_attributes.check_system, {"AWSTraceHeader": a_text("")})
    assert "non-empty value" in empty.message


# --- names ---


@pytest.mark.parametrize(
    ("name", "fifo"),
    [("a", False), ("A-b_9" * 16, False), ("a.fifo", True), ("a" * 75 + ".fifo", True)],
)
def test_good_names_are_taken(name, fifo):
    names.check_new(name, fifo=fifo)


@pytest.mark.parametrize("name", ["", "a b", "x" * 81, "a.b", "a.fifo", "ż", "a\n"])
def test_a_bad_name_is_refused_in_the_words_of_sqs(name):
    assert refusal(names.check_new, name, fifo=False).message == (
        "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
    )


@pytest.mark.parametrize("name", ["", "a", ".fifo", "a" * 76 + ".fifo", "a.b.fifo"])
def test_a_fifo_queues_name_ends_in_fifo(name):
    assert "must end with .fifo suffix" in refusal(names.check_new, name, fifo=True).message


@pytest.mark.parametrize(
    ("url", "account", "name"),
    [
        ("http://localhost:7654/123456789012/mail", "123456789012", "mail"),
        ("https://sqs.eu-west-1.amazonaws.com/123456789012/mail.fifo", "123456789012", "mail.fifo"),
        ("http://proxy/some/prefix/123456789012/mail", "123456789012", "mail"),
        ("/123456789012/mail/", "123456789012", "mail"),
        ("mail", None, "mail"),
        ("http://whatever-incorrect", None, ""),
        ("http://host/mail?x=1", None, "mail"),
        ("", None, ""),
    ],
)
def test_a_queue_is_found_by_the_end_of_its_url(url, account, name):
    assert names.of_url(url) == (account, name)


def test_an_arn_comes_back_from_its_text():
    arn = names.QueueArn("eu-west-1", "123456789012", "mail.fifo")

    assert str(arn) == "arn:aws:sqs:eu-west-1:123456789012:mail.fifo"
    assert names.of_arn(str(arn)) == arn
    assert names.of_arn("arn:aws:sns:eu-west-1:123456789012:mail") is None
    assert names.of_arn("mail") is None
