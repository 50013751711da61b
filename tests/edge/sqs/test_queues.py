"""Queues: created, found, listed and deleted."""

from __future__ import annotations

import pytest

from penstock.domain.queue.queue import Queue, QueueSettings
from penstock.ports.store import Session
from tests.clocks import NOON, ManualClock
from tests.edge.api import a_name
from tests.edge.live import LiveServer
from tests.edge.sqs.aws import ACCOUNT, Aws, arn_of, name_of, refused

BAD_NAME = "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length"
NO_SUCH_QUEUE = "AWS.SimpleQueueService.NonExistentQueue"


def test_the_url_of_a_new_queue_is_at_the_address_that_the_client_used(
    aws: Aws, server: LiveServer
) -> None:
    name = a_name()

    answer = aws.client.create_queue(QueueName=name)

    assert answer["QueueUrl"] == f"{server.url}/{ACCOUNT}/{name}"
    assert aws.client.get_queue_url(QueueName=name)["QueueUrl"] == answer["QueueUrl"]


@pytest.mark.parametrize("name", ["a" * 81, "with.stop", "with space", "ümlaut", "a/b", "nul\0"])
def test_names_that_sqs_does_not_allow_are_refused(aws: Aws, name: str) -> None:
    with refused("InvalidParameterValue", BAD_NAME):
        aws.client.create_queue(QueueName=name)


def test_a_name_does_not_begin_with_a_hyphen(aws: Aws) -> None:
    """AWS allows it; on our command line it would be a flag."""
    with refused("InvalidParameterValue"):
        aws.client.create_queue(QueueName="-queue")


def test_a_queue_needs_a_name(aws: Aws) -> None:
    with refused("MissingParameter", "The request must contain the parameter QueueName."):
        aws.loose.create_queue()
    with refused("InvalidParameterValue", BAD_NAME):
        aws.client.create_queue(QueueName="")


@pytest.mark.parametrize("name", ["-x", "-", "-x.fifo"])
def test_a_name_that_begins_with_a_hyphen_is_refused(aws: Aws, name: str) -> None:
    fifo = {"FifoQueue": "true"} if name.endswith(".fifo") else {}

    with refused("InvalidParameterValue", "The name of a queue cannot begin with a hyphen"):
        aws.client.create_queue(QueueName=name, Attributes=fifo)
    with refused(NO_SUCH_QUEUE):
        aws.client.get_queue_url(QueueName=name)


def test_names_may_have_80_characters_and_keep_their_case(aws: Aws) -> None:
    name = a_name("Big_and-small").ljust(80, "x")

    queue = aws.make_named(name)

    assert name_of(queue) == name
    with refused(NO_SUCH_QUEUE):
        aws.client.get_queue_url(QueueName=name.lower())


def test_a_fifo_queue_is_named_so_and_no_other_queue_is(aws: Aws) -> None:
    with refused("InvalidParameterValue", BAD_NAME):
        aws.make_named(f"{a_name()}.fifo")
    with refused("InvalidParameterValue") as refusal:
        aws.make_named(a_name(), FifoQueue="true")
    assert "must end with .fifo suffix" in refusal.text
    with refused("InvalidParameterValue"):
        aws.make_named("x" * 76 + ".fifo", FifoQueue="true")  # the suffix counts


def test_creating_an_existing_queue_returns_its_url(aws: Aws) -> None:
    queue = aws.make(VisibilityTimeout=10)
    name = name_of(queue)

    assert aws.make_named(name) == queue
    assert aws.make_named(name, VisibilityTimeout=10) == queue
    assert aws.make_named(name, VisibilityTimeout=10, DelaySeconds=0) == queue


def test_a_queue_is_not_made_again_with_another_attribute(aws: Aws) -> None:
    name = name_of(aws.make(VisibilityTimeout=10))

    with refused("QueueAlreadyExists") as refusal:
        aws.make_named(name, VisibilityTimeout=11)
    assert refusal.kind == "QueueNameExists"
    assert refusal.text == (
        "A queue already exists with the same name and a different value for attribute "
        "VisibilityTimeout"
    )


def test_a_queue_is_not_made_again_with_other_tags(aws: Aws) -> None:
    name = name_of(aws.make())

    def make(tags: dict[str, str]) -> str:
        return str(aws.client.create_queue(QueueName=name, tags=tags)["QueueUrl"])

    with refused("QueueAlreadyExists") as refusal:
        make({"team": "mail"})
    assert refusal.kind == "QueueNameExists"
    aws.client.tag_queue(QueueUrl=make({}), Tags={"team": "mail"})
    assert make({"team": "mail"}) == make({})
    with refused("QueueAlreadyExists"):
        make({"team": "post"})


def test_creating_a_queue_again_compares_its_current_attributes(aws: Aws) -> None:
    queue = aws.make(VisibilityTimeout=10)
    name = name_of(queue)
    aws.set(queue, VisibilityTimeout=20)
    aws.send(queue)

    assert aws.make_named(name, VisibilityTimeout=20) == queue
    with refused("QueueAlreadyExists"):
        aws.make_named(name, VisibilityTimeout=10)


def test_a_redrive_policy_is_the_same_however_it_is_written(aws: Aws, queue: str) -> None:
    spaced = f'{{"maxReceiveCount": "3", "deadLetterTargetArn": "{arn_of(queue)}"}}'
    source = aws.make(RedrivePolicy=spaced)
    plain = f'{{"deadLetterTargetArn":"{arn_of(queue)}","maxReceiveCount":3}}'

    assert aws.make_named(name_of(source), RedrivePolicy=plain) == source


def test_a_queue_of_another_account_is_not_found(aws: Aws, queue: str) -> None:
    name = name_of(queue)

    found = aws.client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId=ACCOUNT)

    assert found["QueueUrl"] == queue
    with refused(NO_SUCH_QUEUE):
        aws.client.get_queue_url(QueueName=name, QueueOwnerAWSAccountId="999999999999")
    with refused(NO_SUCH_QUEUE):
        aws.send(queue.replace(ACCOUNT, "999999999999"))


@pytest.mark.parametrize(
    "start",
    ["https://sqs.eu-west-1.amazonaws.com/000000000000/", "http://else:1/000000000000/", ""],
)
def test_a_queue_url_is_read_from_its_end_whatever_host_it_names(
    aws: Aws, queue: str, start: str
) -> None:
    url = start + name_of(queue)

    aws.send(url, "found")

    assert aws.bodies(queue) == ["found"]
    assert aws.attribute(url, "QueueArn") == arn_of(queue)
    aws.client.delete_queue(QueueUrl=url)
    with refused(NO_SUCH_QUEUE):
        aws.send(queue)


@pytest.mark.parametrize("url", ["http://whatever-incorrect", "nul\0", "/", "x" * 400])
def test_a_url_that_names_no_queue_is_one_that_does_not_exist(aws: Aws, url: str) -> None:
    with refused(NO_SUCH_QUEUE, "The specified queue does not exist.") as refusal:
        aws.receive(url)
    assert refusal.kind == "QueueDoesNotExist"


def test_a_queue_url_is_needed(aws: Aws) -> None:
    with refused("MissingParameter", "The request must contain the parameter QueueUrl."):
        aws.loose.receive_message()


@pytest.mark.parametrize(
    ("operation", "fields"),
    [
        ("add_permission", {}),
        ("change_message_visibility", {"ReceiptHandle": "x"}),
        ("change_message_visibility_batch", {"Entries": []}),
        ("delete_message", {"ReceiptHandle": "x"}),
        ("delete_message_batch", {}),
        ("delete_queue", {}),
        ("get_queue_attributes", {"AttributeNames": ["Nonsense"]}),
        ("list_dead_letter_source_queues", {"MaxResults": 5000}),
        ("list_queue_tags", {}),
        ("purge_queue", {}),
        ("receive_message", {"MaxNumberOfMessages": 99}),
        ("remove_permission", {}),
        ("send_message", {}),
        ("send_message_batch", {"Entries": []}),
        ("set_queue_attributes", {}),
        ("tag_queue", {}),
        ("untag_queue", {}),
    ],
)
def test_a_missing_queue_is_reported_before_other_errors(
    aws: Aws, operation: str, fields: dict
) -> None:
    with refused(NO_SUCH_QUEUE, "The specified queue does not exist."):
        getattr(aws.loose, operation)(QueueUrl="http://localhost/000000000000/no-such", **fields)


def test_queues_are_listed_by_the_start_of_their_names(aws: Aws) -> None:
    start = a_name("start")
    found = [aws.make_named(f"{start}_{n}") for n in range(3)]
    aws.make_named(f"other-{start}")

    answer = aws.client.list_queues(QueueNamePrefix=f"{start}_")

    assert answer["QueueUrls"] == found
    assert "NextToken" not in answer
    # One page of all: of a server that other tests use too these three may not be on it.
    everything = aws.client.list_queues(MaxResults=1_000)["QueueUrls"]
    assert aws.client.list_queues(QueueNamePrefix="")["QueueUrls"] == everything


@pytest.mark.parametrize("prefix", ["no-such", "%", "nul\0"])
def test_a_list_without_queues_has_no_member_for_them(aws: Aws, queue: str, prefix: str) -> None:
    answer = aws.client.list_queues(QueueNamePrefix=prefix)

    assert answer.keys() == {"ResponseMetadata"}


def test_a_queue_that_another_node_deleted_is_not_remembered_by_those_who_ask(
    aws: Aws, server: LiveServer
) -> None:
    broker = server.broker
    for ask in (aws.receive, aws.send):
        queue = aws.make()
        aws.send(queue)
        remove_elsewhere(server, known_number(server, queue))

        with refused(NO_SUCH_QUEUE):
            ask(queue)

        assert broker.directory.cached(name_of(queue)) is None


def test_nothing_is_remembered_of_a_deleted_queue(aws: Aws, server: LiveServer) -> None:
    directory = server.broker.directory
    queue = aws.make()
    aws.send(queue)
    number = known_number(server, queue)

    aws.client.delete_queue(QueueUrl=queue)

    assert directory.known_name(number) is None


def test_a_queue_that_another_node_recreated_has_one_number(aws: Aws, server: LiveServer) -> None:
    broker = server.broker
    queue = aws.make()
    aws.send(queue)
    number = known_number(server, queue)

    def make_anew(session: Session) -> Queue:
        session.queues.remove(number, now=NOON)
        return session.queues.add(name_of(queue), QueueSettings(), now=NOON)

    made = broker.store.write(make_anew).result()
    broker.directory.load(name_of(queue)).result()

    assert broker.directory.known_name(number) is None
    assert broker.directory.known_name(made.queue_no) == name_of(queue)


def remove_elsewhere(server: LiveServer, number: int) -> None:
    """Remove it as another node would, without updating this node's cache."""
    server.broker.store.write(lambda s: s.queues.remove(number, now=NOON)).result()


def known_number(server: LiveServer, queue: str) -> int:
    found = server.broker.directory.cached(name_of(queue))
    assert found is not None
    return found.queue_no


def test_a_deleted_queue_is_gone_with_its_messages(aws: Aws) -> None:
    queue = aws.make(VisibilityTimeout=77)
    aws.client.tag_queue(QueueUrl=queue, Tags={"a": "b"})
    aws.send(queue)

    aws.client.delete_queue(QueueUrl=queue)

    for use in (aws.send, aws.receive, aws.attributes):
        with refused(NO_SUCH_QUEUE):
            use(queue)
    assert aws.make_named(name_of(queue)) == queue
    assert aws.counts(queue) == (0, 0, 0)
    assert aws.attribute(queue, "VisibilityTimeout") == "30"
    assert "Tags" not in aws.client.list_queue_tags(QueueUrl=queue)


def test_a_queue_can_be_made_with_tags(aws: Aws) -> None:
    made = aws.client.create_queue(QueueName=a_name(), tags={"team": "mail"})

    shown = aws.client.list_queue_tags(QueueUrl=made["QueueUrl"])

    assert shown["Tags"] == {"team": "mail"}


def test_a_purge_drops_messages_in_every_state(aws: Aws, queue: str, clock: ManualClock) -> None:
    aws.send_all(queue, "in flight", "visible")
    handle = aws.handle(queue)
    aws.send(queue, "delayed", DelaySeconds=60)
    assert aws.counts(queue) == (1, 1, 1)

    aws.client.purge_queue(QueueUrl=queue)

    assert aws.counts(queue) == (0, 0, 0)
    clock.advance(hours=1)
    assert aws.receive(queue) == []
    aws.delete(queue, handle)  # not an error
    aws.client.purge_queue(QueueUrl=queue)  # nor is this, with relaxed limits
