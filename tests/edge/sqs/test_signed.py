"""Servers that require keys: requests are signed as AWS's SDKs sign them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSPreparedRequest, AWSRequest
from kombu.asynchronous.aws.sqs.connection import AsyncSQSConnection

from penstock.domain.access.api_key import Role
from tests.edge.api import Api, a_name
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer
from tests.edge.sqs.aws import Aws, arn_of, name_of, refused

SignIn = Callable[..., Aws]
NO_TOKEN = "Request is missing Authentication Token"


@pytest.fixture(scope="module")
def server_with_keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that requires a key."""
    settings = some_settings(
        tmp_path_factory.mktemp("signed"),
        auth={"required": "always"},
        server={"trusted_proxies": "127.0.0.1"},
    )
    with LiveServer(settings, has_duties=False) as started:
        yield started


@pytest.fixture(scope="module")
def sign_in(server_with_keys: LiveServer) -> SignIn:
    """boto3 with its own key; all roles if none is given."""

    def make(*roles: Role, queues: tuple[str, ...] = ("*",)) -> Aws:
        broker = server_with_keys.broker
        made = broker.keys.create("a test", roles=roles or tuple(Role), queues=queues).result()
        broker.refresh_keys()
        key_id = made.key.key_id
        return Aws(server_with_keys.url, key=key_id, secret=broker.keys.signing_secret(made.key))

    return make


@pytest.fixture(scope="module")
def owner(sign_in: SignIn) -> Aws:
    return sign_in()


@pytest.fixture
def queue(owner: Aws) -> str:
    return owner.make()


def test_a_signed_request_is_served(owner: Aws, queue: str) -> None:
    owner.send(queue, "sïgned " * 10_000, MessageGroupId="g")

    message = owner.receive_one(queue)
    owner.delete(queue, message["ReceiptHandle"])

    assert owner.counts(queue) == (0, 0, 0)


def test_a_wrong_secret_is_found(server_with_keys: LiveServer, owner: Aws) -> None:
    key_id = owner.client._request_signer._credentials.access_key

    with refused("SignatureDoesNotMatch", status=403):
        Aws(server_with_keys.url, key=key_id, secret="wrong").client.list_queues()


def test_an_unknown_key_is_refused(server_with_keys: LiveServer) -> None:
    with refused(
        "InvalidClientTokenId",
        "The security token included in the request is invalid.",
        status=403,
    ):
        Aws(server_with_keys.url, key="AKIAUNKNOWN").client.list_queues()


def test_an_unsigned_request_is_rejected_in_either_protocol(server_with_keys: LiveServer) -> None:
    with httpx.Client(base_url=server_with_keys.url, trust_env=False) as http:
        json = http.post("/", headers={"X-Amz-Target": "AmazonSQS.ListQueues"})
        query = http.get("/", params={"Action": "ListQueues"})
        bearer = http.post(
            "/",
            headers={"X-Amz-Target": "AmazonSQS.ListQueues", "Authorization": "Bearer nonsense"},
        )

    for answer in (json, bearer):
        assert answer.status_code == 403
        assert answer.headers["x-amzn-query-error"] == "MissingAuthenticationToken;Sender"
        assert answer.json()["message"] == NO_TOKEN
    assert query.status_code == 403
    assert "<Code>MissingAuthenticationToken</Code>" in query.text


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"X-Amz-Target": "AmazonSQS.SendMessage"}, b"{no JSON"),
        ({"X-Amz-Target": "AmazonSQS.Nonsense"}, b"{}"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, b"Action=SendMessage&x=%ff"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, b"&" * 10_000),
    ],
)
def test_the_body_of_an_unsigned_request_is_not_read(
    server_with_keys: LiveServer, headers: dict[str, str], body: bytes
) -> None:
    """Reading a body takes time, and other requests have to wait."""
    answer = httpx.post(server_with_keys.url, content=body, headers=headers, trust_env=False)

    assert answer.status_code == 403
    assert "MissingAuthenticationToken" in answer.text


def test_a_revoked_key_is_an_unknown_one(server_with_keys: LiveServer, sign_in: SignIn) -> None:
    client = sign_in()
    client.client.list_queues()
    key_id = client.client._request_signer._credentials.access_key

    server_with_keys.broker.keys.revoke(key_id).result()
    server_with_keys.broker.refresh_keys()

    with refused("InvalidClientTokenId", status=403):
        client.client.list_queues()


def presigned(client: Aws, expires: int = 60, **fields: str) -> str:
    """A URL as older SDKs create it; those of boto3 for this protocol name no operation."""
    request = AWSRequest("GET", f"{client.url}/?{urlencode(fields)}")
    credentials = client.client._request_signer._credentials
    SigV4QueryAuth(credentials, "sqs", "eu-west-3", expires=expires).add_auth(request)
    return str(request.url)


def test_a_presigned_url_is_a_request(owner: Aws, queue: str) -> None:
    url = presigned(owner, Action="SendMessage", QueueUrl=queue, MessageBody="presigned ☃")

    answer = httpx.get(url, trust_env=False)
    forged = httpx.get(url.replace("presigned", "forged"), trust_env=False)

    assert answer.status_code == 200, answer.text
    assert forged.status_code == 403
    assert "<Code>SignatureDoesNotMatch</Code>" in forged.text
    assert owner.bodies(queue) == ["presigned ☃"]


def test_a_presigned_url_is_good_for_nothing_else(owner: Aws, queue: str) -> None:
    url = presigned(owner, Action="GetQueueUrl", QueueName=name_of(queue))

    answer = httpx.get(url, headers={"X-Amz-Target": "AmazonSQS.ListQueues"}, trust_env=False)

    assert answer.status_code == 403
    assert "<Code>SignatureDoesNotMatch</Code>" in answer.text


def test_a_header_that_comes_twice_is_signed_once(owner: Aws, queue: str) -> None:
    request = AWSRequest("POST", f"{owner.url}/", data="{}")
    request.headers["X-Amz-Target"] = "AmazonSQS.ListQueues"
    request.headers["X-Amz-Word"] = "a,b"
    SigV4Auth(owner.client._request_signer._credentials, "sqs", "eu-west-3").add_auth(request)
    signed = [(name, _text(value)) for name, value in request.headers.items()]

    twice = [pair for pair in signed if pair[0] != "X-Amz-Word"]
    twice += [("X-Amz-Word", "a"), ("X-Amz-Word", "b")]
    answer = httpx.post(owner.url, content="{}", headers=twice, trust_env=False)

    assert answer.status_code == 200, answer.text


def test_a_signed_host_is_what_queue_urls_begin_with(owner: Aws, queue: str) -> None:
    body = json.dumps({"QueueName": name_of(queue)})
    request = AWSRequest("POST", f"{owner.url}/", data=body)
    request.headers["X-Amz-Target"] = "AmazonSQS.GetQueueUrl"
    SigV4Auth(owner.client._request_signer._credentials, "sqs", "eu-west-3").add_auth(request)
    forwarded = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https"}

    headers = {**dict(request.headers), **forwarded}
    answer = httpx.post(owner.url, content=body, headers=headers, trust_env=False)

    assert answer.json()["QueueUrl"] == queue.replace("http:", "https:")


def test_a_signature_is_for_one_operation(owner: Aws, queue: str) -> None:
    """It was made without the header that names the operation."""
    owner.send(queue)
    body = json.dumps({"QueueUrl": queue})
    request = AWSRequest("POST", f"{owner.url}/", data=body)
    request.headers["Content-Type"] = "application/x-amz-json-1.0"
    SigV4Auth(owner.client._request_signer._credentials, "sqs", "eu-west-3").add_auth(request)

    headers = {**dict(request.headers), "X-Amz-Target": "AmazonSQS.PurgeQueue"}
    answer = httpx.post(owner.url, content=body, headers=headers, trust_env=False)

    assert answer.status_code == 403
    assert answer.headers["x-amzn-query-error"] == "SignatureDoesNotMatch;Sender"
    assert answer.json()["__type"] == "com.amazon.coral.service#InvalidSignatureException"
    assert owner.counts(queue) == (1, 0, 0)


def test_a_request_that_celerys_transport_signs_is_served(owner: Aws, queue: str) -> None:
    owner.send(queue, "for a worker")
    sent: list[AWSPreparedRequest] = []

    class Connection(AsyncSQSConnection):
        def _mexe(self, request: Any, sender: Any = None, callback: Any = None) -> None:
            sent.append(request)

    Connection(owner.client, http_client=object()).make_request(
        "ReceiveMessage", {"MaxNumberOfMessages": 10}, queue, "POST"
    )

    [request] = sent
    headers = {name: _text(value) for name, value in request.headers.items()}
    answer = httpx.post(request.url, content=request.body, headers=headers, trust_env=False)
    assert [message["Body"] for message in answer.json()["Messages"]] == ["for a worker"]


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


# --- roles ---


def test_a_producer_sends_and_does_no_more(sign_in: SignIn, owner: Aws, queue: str) -> None:
    producer = sign_in(Role.PRODUCE)

    assert producer.client.get_queue_url(QueueName=name_of(queue))["QueueUrl"] == queue
    producer.send(queue)
    producer.send_batch(queue, {"MessageBody": "x"})
    assert producer.counts(queue) == (2, 0, 0)

    handle = owner.handle(queue)
    for act in (
        lambda: producer.receive(queue),
        lambda: producer.delete(queue, handle),
        lambda: producer.hide(queue, handle, 0),
        lambda: producer.client.purge_queue(QueueUrl=queue),
        lambda: producer.client.delete_queue(QueueUrl=queue),
        lambda: producer.client.create_queue(QueueName=a_name()),
        lambda: producer.set(queue, DelaySeconds=1),
        lambda: producer.client.tag_queue(QueueUrl=queue, Tags={"a": "b"}),
        lambda: producer.client.start_message_move_task(SourceArn=arn_of(queue)),
    ):
        with refused("AccessDenied", status=403):
            act()
    assert owner.counts(queue) == (1, 1, 0)


def test_a_consumer_receives_and_does_not_send(sign_in: SignIn, owner: Aws, queue: str) -> None:
    owner.send(queue)
    consumer = sign_in(Role.CONSUME)

    consumer.hide(queue, consumer.handle(queue), 0)
    consumer.delete(queue, consumer.handle(queue))

    with refused("AccessDenied", status=403):
        consumer.send(queue)
    with refused("AccessDenied", status=403):
        consumer.send_batch(queue, {"MessageBody": "x"})


def test_a_key_is_for_its_queues(sign_in: SignIn, owner: Aws) -> None:
    start = a_name("mail")
    mine, other = owner.make_named(f"{start}-in"), owner.make()
    client = sign_in(queues=(f"{start}-*",))

    assert client.client.list_queues()["QueueUrls"] == [mine]
    client.send(mine)
    client.make_named(f"{start}-out")
    for act in (
        lambda: client.send(other),
        lambda: client.receive(other),
        lambda: client.attributes(other),
        lambda: client.client.get_queue_url(QueueName=name_of(other)),
        lambda: client.client.list_queue_tags(QueueUrl=other),
        lambda: client.client.list_message_move_tasks(SourceArn=arn_of(other)),
        lambda: client.make_named("not-mine"),
    ):
        with refused("AccessDenied", status=403):
            act()


def test_a_key_points_dead_letters_at_its_own_queues_only(sign_in: SignIn, owner: Aws) -> None:
    start = a_name("team")
    mine, letters, other = owner.make_named(f"{start}-in"), f"{start}-dead", owner.make()
    client = sign_in(Role.OPERATE, queues=(f"{start}-*",))

    def policy(queue: str) -> str:
        return json.dumps({"deadLetterTargetArn": arn_of(queue), "maxReceiveCount": 1})

    client.set(mine, RedrivePolicy=policy(client.make_named(letters)))
    for target in (other, "there-is-none"):
        with refused("AccessDenied", status=403):
            client.set(mine, RedrivePolicy=policy(target))
        with refused("AccessDenied", status=403):
            client.make_named(f"{start}-new", RedrivePolicy=policy(target))
    assert json.loads(owner.attributes(mine)["RedrivePolicy"])["deadLetterTargetArn"] == arn_of(
        letters
    )


def test_pages_are_full_of_what_a_key_may_see(sign_in: SignIn, owner: Aws) -> None:
    start = a_name("seen")
    for n in range(6):
        owner.make_named(f"{start}-{'mine' if n % 2 else 'other'}-{n}")
    client = sign_in(queues=(f"{start}-mine-*",))

    first = client.client.list_queues(QueueNamePrefix=start, MaxResults=2)
    last = client.client.list_queues(
        QueueNamePrefix=start, MaxResults=2, NextToken=first["NextToken"]
    )

    assert [name_of(url)[-1] for url in first["QueueUrls"] + last["QueueUrls"]] == ["1", "3", "5"]
    assert "NextToken" not in last


def test_the_native_api_of_such_a_server_takes_no_signature(
    server_with_keys: LiveServer, owner: Aws, queue: str
) -> None:
    api = Api(server_with_keys.url)

    assert api.call("GET", f"/v1/queues/{name_of(queue)}").status_code == 401
    api.close()
