"""Load of SQS queues: our own SQS API, which checks signatures, and a server that fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials
from yarl import URL

from penstock.domain.access.api_key import Role
from penstock.domain.errors import QueueUnknown, SourceUnavailable
from penstock.domain.limits import DAY
from penstock.domain.scaling.fleet_sources import SqsSource
from penstock.domain.scaling.recommendation import Sample
from penstock.outbound.sqs_source import Credentials, SqsLoad, signed_headers
from tests.clocks import NOON
from tests.edge.api import a_name
from tests.edge.conftest import some_settings
from tests.edge.live import LiveServer
from tests.edge.sqs.aws import ACCOUNT, Aws, name_of
from tests.support.http_backend import Answer, Hang, HangUp, HttpBackend


@pytest.fixture(scope="module")
def server_with_keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server that requires a key."""
    settings = some_settings(tmp_path_factory.mktemp("signed"), auth={"required": "always"})
    with LiveServer(settings, has_duties=False) as started:
        yield started


@pytest.fixture
def aws(server_with_keys: LiveServer, monkeypatch: pytest.MonkeyPatch) -> Aws:
    """boto3, with the key that the environment has as well."""
    broker = server_with_keys.broker
    made = broker.keys.create("a test", roles=tuple(Role), queues=("*",)).result()
    broker.refresh_keys()
    secret = broker.keys.signing_secret(made.key)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", made.key.key_id)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    return Aws(server_with_keys.url, key=made.key.key_id, secret=secret)


def source(url: str, **more: Any) -> SqsLoad:
    return SqsLoad("aws", SqsSource(endpoint=url, **more))


def test_ready_and_leased_messages_are_counted_separately(server_with_keys, aws):
    url = aws.make()
    aws.send_all(url, "a", "b", "c")
    aws.receive_one(url)
    load = source(server_with_keys.url)

    by_name = load.read(name_of(url), None, now=server_with_keys.clock.now())
    by_url = load.read(url, None, now=server_with_keys.clock.now())

    assert by_name == by_url == Sample(ready=2, leased=1)


def test_the_account_of_the_queue_may_be_named(server_with_keys, aws):
    url = aws.make()

    found = source(server_with_keys.url, account=ACCOUNT).read(
        name_of(url), None, now=server_with_keys.clock.now()
    )

    assert found == Sample(ready=0)


def test_a_queue_is_unknown_until_it_is_created(server_with_keys, aws):
    name, load = a_name("later"), source(server_with_keys.url)
    with pytest.raises(QueueUnknown, match=f"source aws: SQS has no queue '{name}'"):
        load.read(name, None, now=server_with_keys.clock.now())

    url = aws.make_named(name)
    assert load.read(name, None, now=server_with_keys.clock.now()).ready == 0

    aws.client.delete_queue(QueueUrl=url)
    with pytest.raises(QueueUnknown):
        load.read(name, None, now=server_with_keys.clock.now())


def test_a_wrong_secret_is_rejected_and_not_shown_in_errors(server_with_keys, aws, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s3cret")

    with pytest.raises(SourceUnavailable, match="it answered 403: InvalidSignature") as error:
        source(server_with_keys.url).read("mail", None, now=server_with_keys.clock.now())

    assert "s3cret" not in str(error.value)


def test_a_wrong_clock_is_reported(server_with_keys, aws):
    with pytest.raises(SourceUnavailable, match="403"):
        source(server_with_keys.url).read("mail", None, now=server_with_keys.clock.now() + DAY)


def test_without_keys_no_request_is_sent(server_with_keys, aws, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")

    with pytest.raises(SourceUnavailable, match="variable AWS_ACCESS_KEY_ID is not set"):
        source(server_with_keys.url).read("mail", None, now=server_with_keys.clock.now())


@pytest.mark.parametrize("token", [None, "a/session+token=="])
@pytest.mark.parametrize("url", ["https://sqs.eu-west-1.amazonaws.com/", "http://host:9324/a b/"])
def test_requests_are_signed_as_botocore_signs_them(url, token):
    headers = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.X"}
    theirs = AWSRequest("POST", str(URL(url)), data=b"{}", headers=headers)
    theirs.context["timestamp"] = "20300314T120000Z"
    signer = SigV4Auth(BotoCredentials("key", "secret", token), "sqs", "eu-west-1")
    ours = signed_headers(
        URL(url),
        b"{}",
        headers,
        who=Credentials("key", "secret", token),
        region="eu-west-1",
        service="sqs",
        now=NOON,
    )
    theirs.context["timestamp"] = ours["X-Amz-Date"]
    theirs.headers["X-Amz-Date"] = ours["X-Amz-Date"]
    if token is not None:
        theirs.headers["X-Amz-Security-Token"] = token

    canonical = signer.canonical_request(theirs)
    signature = signer.signature(signer.string_to_sign(theirs, canonical), theirs)

    assert ours["Authorization"].endswith(f"Signature={signature}")


@pytest.mark.parametrize(
    ("behaviour", "why"),
    [
        (Answer(500), "it answered 500"),
        (Answer(200, body=b"hello"), "not one of SQS"),
        (Answer(200, body=b'{"QueueUrl": "u", "Attributes": {}}'), "does not report Approximate"),
        (Answer(301, {"Location": "http://127.0.0.1:1/"}), "it answered 301"),
        (Hang(), "no answer within 500 ms"),
        (HangUp(), "source aws, SQS at 127.0.0.1"),
    ],
)
def test_any_error_makes_the_source_unavailable(aws, behaviour, why):
    with HttpBackend() as backend:
        backend.behave = lambda seen: behaviour
        with pytest.raises(SourceUnavailable, match=why):
            source(backend.url, timeout_ms=500).read("mail", None, now=NOON)
