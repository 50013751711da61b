"""Dead letters are moved back, or elsewhere, in the background."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.clocks import ManualClock
from tests.edge.duties import advance_moves
from tests.edge.live import LiveServer
from tests.edge.sqs.aws import Aws, arn_of, refused

pytestmark = pytest.mark.both_stores

RUNNING = (
    "There is already a task running. Only one active task is allowed for a source queue arn at a "
    "given time."
)

OTHER_TYPE = (
    "Source queue and destination queue must both be FIFO queues or both be standard queues."
)
SAME_QUEUE = "Source queue arn and destination queue arn cannot be the same."


def no_resource(parameter: str) -> str:
    return f"The resource that you specified for the {parameter} parameter doesn't exist."


@pytest.fixture
def letters(aws: Aws) -> str:
    return aws.make("letters")


@pytest.fixture
def source(aws: Aws, letters: str) -> str:
    policy = {"deadLetterTargetArn": arn_of(letters), "maxReceiveCount": 1}
    return aws.make(VisibilityTimeout=0, RedrivePolicy=json.dumps(policy))


def die(aws: Aws, source: str, *bodies: str) -> None:
    aws.send_all(source, *bodies)
    assert len(aws.receive(source)) == len(bodies)
    assert aws.receive(source) == []


def start(aws: Aws, queue: str, rate: int = 500, **fields: Any) -> str:
    answer = aws.client.start_message_move_task(
        SourceArn=arn_of(queue), MaxNumberOfMessagesPerSecond=rate, **fields
    )
    return str(answer["TaskHandle"])


def tasks(aws: Aws, queue: str, **fields: Any) -> list[dict[str, Any]]:
    answer = aws.client.list_message_move_tasks(SourceArn=arn_of(queue), **fields)
    return list(answer.get("Results", []))


def test_dead_letters_go_back_to_where_they_died(
    aws: Aws, server: LiveServer, clock: ManualClock, letters: str, source: str
) -> None:
    policy = {"deadLetterTargetArn": arn_of(letters), "maxReceiveCount": 1}
    other = aws.make(VisibilityTimeout=0, RedrivePolicy=json.dumps(policy))
    die(aws, source, "a", "b")
    die(aws, other, "c")
    started_at = clock.now()

    handle = start(aws, letters)

    assert tasks(aws, letters) == [
        {
            "TaskHandle": handle,
            "Status": "RUNNING",
            "SourceArn": arn_of(letters),
            "MaxNumberOfMessagesPerSecond": 500,
            "ApproximateNumberOfMessagesMoved": 0,
            "ApproximateNumberOfMessagesToMove": 3,
            "StartedTimestamp": started_at,
        }
    ]
    advance_moves(server, clock)
    assert tasks(aws, letters) == [
        {
            "Status": "COMPLETED",
            "SourceArn": arn_of(letters),
            "MaxNumberOfMessagesPerSecond": 500,
            "ApproximateNumberOfMessagesMoved": 3,
            "ApproximateNumberOfMessagesToMove": 3,
            "StartedTimestamp": started_at,
        }
    ]
    assert aws.counts(letters) == (0, 0, 0)
    assert aws.bodies(source) == ["a", "b"]
    assert aws.bodies(other) == ["c"]


def test_a_message_that_was_moved_back_starts_with_zero_receives(
    aws: Aws, server: LiveServer, clock: ManualClock, letters: str, source: str
) -> None:
    die(aws, source, "a")
    aws.receive_one(letters, VisibilityTimeout=0)
    start(aws, letters)
    advance_moves(server, clock)

    got = aws.receive_one(source, AttributeNames=["All"])

    assert got["Attributes"]["ApproximateReceiveCount"] == "1"
    assert "DeadLetterQueueSourceArn" not in got["Attributes"]
    assert aws.receive(source) == []  # and dies again
    assert aws.bodies(letters) == ["a"]


def test_dead_letters_of_a_fifo_queue_go_back_in_order(
    aws: Aws, server: LiveServer, clock: ManualClock
) -> None:
    letters = aws.make_fifo()
    policy = {"deadLetterTargetArn": arn_of(letters), "maxReceiveCount": 1}
    line = aws.make_fifo(VisibilityTimeout=0, RedrivePolicy=json.dumps(policy))
    aws.send_all(line, "a", "b", "c", group="g")
    aws.receive(line)
    assert aws.counts(line) == (0, 0, 0)
    start(aws, letters)

    advance_moves(server, clock)

    got = aws.receive(line, AttributeNames=["All"])
    assert [m["Body"] for m in got] == ["a", "b", "c"]
    assert {m["Attributes"]["MessageGroupId"] for m in got} == {"g"}


def test_a_handle_names_the_task_and_its_source(aws: Aws, letters: str, source: str) -> None:
    handle = json.loads(base64.b64decode(start(aws, letters)))

    assert handle["sourceArn"] == arn_of(letters)
    assert len(handle["taskId"]) == 36


def test_dead_letters_go_where_they_are_sent(
    aws: Aws, server: LiveServer, clock: ManualClock, letters: str, source: str
) -> None:
    target = aws.make()
    die(aws, source, "a")

    aws.client.start_message_move_task(SourceArn=arn_of(letters), DestinationArn=arn_of(target))

    [task] = tasks(aws, letters)
    assert task["DestinationArn"] == arn_of(target)
    assert "MaxNumberOfMessagesPerSecond" not in task
    advance_moves(server, clock)
    got = aws.receive_one(target, AttributeNames=["All"])
    assert got["Body"] == "a"
    assert "DeadLetterQueueSourceArn" not in got["Attributes"]
    assert aws.counts(source) == (0, 0, 0)


def test_messages_are_moved_no_faster_than_requested(
    aws: Aws, server: LiveServer, clock: ManualClock, letters: str, source: str
) -> None:
    die(aws, source, *"abcdef")
    start(aws, letters, rate=2)

    moved = []
    for _ in range(3):
        advance_moves(server, clock)
        moved.append(tasks(aws, letters)[0]["ApproximateNumberOfMessagesMoved"])

    assert moved[-1] <= 8
    assert moved[0] < 6
    assert moved == sorted(moved)


def test_one_task_at_a_time(
    aws: Aws, server: LiveServer, clock: ManualClock, letters: str, source: str
) -> None:
    die(aws, source, "a")
    start(aws, letters)

    with refused("InvalidParameterValue", RUNNING):
        start(aws, letters)

    advance_moves(server, clock)
    start(aws, letters)


def test_a_task_is_cancelled(
    aws: Aws, server: LiveServer, clock: ManualClock, letters: str, source: str
) -> None:
    die(aws, source, *"abc")
    handle = start(aws, letters, rate=1)

    answer = aws.client.cancel_message_move_task(TaskHandle=handle)

    assert answer["ApproximateNumberOfMessagesMoved"] == 0
    assert tasks(aws, letters)[0]["Status"] == "CANCELLING"
    advance_moves(server, clock)
    [task] = tasks(aws, letters)
    assert task["Status"] == "CANCELLED"
    assert "TaskHandle" not in task
    assert aws.counts(letters) == (3, 0, 0)
    with refused("InvalidParameterValue"):
        aws.client.cancel_message_move_task(TaskHandle=handle)


def test_the_newest_task_is_listed_first_and_one_unless_more_are_asked_for(
    aws: Aws, server: LiveServer, clock: ManualClock, letters: str, source: str
) -> None:
    assert tasks(aws, letters) == []
    for _ in range(3):
        start(aws, letters)
        advance_moves(server, clock)

    assert len(tasks(aws, letters)) == 1
    found = tasks(aws, letters, MaxResults=10)
    times = [task["StartedTimestamp"] for task in found]
    assert len(times) == 3
    assert times == sorted(times, reverse=True)
    for wrong in (0, 11):
        with refused("InvalidParameterValue"):
            tasks(aws, letters, MaxResults=wrong)


def test_only_a_dead_letter_queue_can_be_moved_from(aws: Aws, queue: str) -> None:
    with refused(
        "InvalidParameterValue", "Source queue must be configured as a Dead Letter Queue."
    ):
        start(aws, queue)


def test_messages_are_not_moved_to_a_queue_of_another_type(
    aws: Aws, letters: str, source: str, line: str
) -> None:
    fifo_letters = aws.make_fifo()
    policy = {"deadLetterTargetArn": arn_of(fifo_letters), "maxReceiveCount": 1}
    aws.make_fifo(RedrivePolicy=json.dumps(policy))

    for start_at, target in ((letters, line), (fifo_letters, source)):
        with refused("InvalidParameterValue", OTHER_TYPE):
            start(aws, start_at, DestinationArn=arn_of(target))
        assert tasks(aws, start_at) == []
    start(aws, fifo_letters, DestinationArn=arn_of(line))


def test_a_queue_is_not_moved_to_itself(aws: Aws, letters: str, source: str) -> None:
    with refused("InvalidParameterValue", SAME_QUEUE):
        start(aws, letters, DestinationArn=arn_of(letters))


def test_queues_that_are_not_there(aws: Aws, letters: str, source: str) -> None:
    for unknown in (f"{arn_of(letters)}x", "nonsense", arn_of("x").replace("000000", "999999")):
        for act in (aws.client.start_message_move_task, aws.client.list_message_move_tasks):
            with refused(
                "ResourceNotFoundException", no_resource("SourceArn"), status=404
            ) as refusal:
                act(SourceArn=unknown)
            assert refusal.kind == "ResourceNotFoundException"
        with refused("ResourceNotFoundException", no_resource("DestinationArn"), status=404):
            start(aws, letters, DestinationArn=unknown)


@pytest.mark.parametrize("wrong", [0, 501])
def test_rates_have_their_range(aws: Aws, letters: str, source: str, wrong: int) -> None:
    with refused("InvalidParameterValue"):
        start(aws, letters, rate=wrong)


def test_a_task_whose_target_is_gone_has_failed(
    aws: Aws, server: LiveServer, clock: ManualClock, letters: str, source: str
) -> None:
    target = aws.make()
    die(aws, source, "a")
    start(aws, letters, DestinationArn=arn_of(target))
    aws.client.delete_queue(QueueUrl=target)

    advance_moves(server, clock)

    [task] = tasks(aws, letters)
    assert task["Status"] == "FAILED"
    assert task["FailureReason"] == "AWS.SimpleQueueService.NonExistentQueue"
    assert aws.counts(letters) == (1, 0, 0)


def test_a_message_that_never_died_has_nowhere_to_go_back_to(
    aws: Aws, server: LiveServer, clock: ManualClock, letters: str, source: str
) -> None:
    aws.send(letters, "put there by hand")
    start(aws, letters)

    advance_moves(server, clock)

    [task] = tasks(aws, letters)
    assert task["Status"] == "FAILED"
    assert task["FailureReason"] == "CouldNotDetermineMessageSource"
    assert aws.bodies(letters) == ["put there by hand"]


# --- handles ---


def forged(task_id: str, arn: str) -> str:
    return base64.b64encode(json.dumps({"taskId": task_id, "sourceArn": arn}).encode()).decode()


@pytest.mark.parametrize("wrong", ["nonsense", "", "bm9uc2Vuc2U="])
def test_an_invalid_handle_is_rejected(aws: Aws, wrong: str) -> None:
    with refused("InvalidParameterValue", "Value for parameter TaskHandle is invalid."):
        aws.client.cancel_message_move_task(TaskHandle=wrong)


def test_a_handle_of_no_task_is_refused(aws: Aws, letters: str) -> None:
    unknown = "01ba4e95-8a00-7cc4-a3ba-2b1d1c5f8e11"

    for task_id in (unknown, "nul\0", ""):
        with refused("ResourceNotFoundException", "Task does not exist.", status=404):
            aws.client.cancel_message_move_task(TaskHandle=forged(task_id, arn_of(letters)))
    with refused("ResourceNotFoundException", no_resource("SourceArn"), status=404):
        aws.client.cancel_message_move_task(TaskHandle=forged(unknown, arn_of("x/no-such")))


def test_a_handle_cancels_no_task_of_another_queue(aws: Aws, letters: str, source: str) -> None:
    task_id = json.loads(base64.b64decode(start(aws, letters)))["taskId"]

    with refused("ResourceNotFoundException", "Task does not exist.", status=404):
        aws.client.cancel_message_move_task(TaskHandle=forged(task_id, arn_of(source)))

    assert tasks(aws, letters)[0]["Status"] == "RUNNING"
