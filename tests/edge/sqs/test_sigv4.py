"""Signatures: botocore signs, we verify, and every change in between is detected."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from penstock.domain.access.api_key import ANYONE
from penstock.edge.aws import sigv4
from penstock.edge.aws.errors import AwsError
from penstock.edge.server.request import Request, split_target
from penstock.services.access import Signer

KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
SIGNER = Signer(ANYONE, SECRET)
NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
NOW_MS = int(NOW.timestamp()) * 1000
MINUTE = 60_000
URL = "http://localhost:7654"


@pytest.fixture(autouse=True)
def signed_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """botocore reads the clock itself."""
    monkeypatch.setattr(auth, "get_current_datetime", lambda remove_tzinfo=True: NOW)


def signed(
    url: str = f"{URL}/",
    *,
    method: str = "POST",
    body: bytes = b'{"QueueUrl":"x"}',
    headers: dict[str, str] | None = None,
    secret: str = SECRET,
    token: str | None = None,
    region: str = "eu-west-1",
    service: str = "sqs",
    signer: Any = None,
) -> Request:
    given = AWSRequest(method, url, data=body, headers=headers or {})
    credentials = Credentials(KEY, secret, token)
    (signer or auth.SigV4Auth)(credentials, service, region).add_auth(given)
    prepared = given.prepare()
    host, _, target = prepared.url.partition("://")[2].partition("/")
    path, query = split_target(b"/" + target.encode())
    sent = {name.lower().encode(): _bytes(value) for name, value in prepared.headers.items()}
    sent[b"host"] = host.encode()
    return Request(method, path, query, sent, body)


def presigned(url: str, *, expires: int = 300, **how: Any) -> Request:
    def signer(*args: Any) -> auth.SigV4QueryAuth:
        return auth.SigV4QueryAuth(*args, expires=expires)

    return signed(url, method="GET", body=b"", signer=signer, **how)


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()


def verify(request: Request, *, now: int = NOW_MS) -> Signer:
    return sigv4.verify(request, now=now, signer_of={KEY: SIGNER}.get, service="sqs")


def refused(request: Request, *, now: int = NOW_MS) -> AwsError:
    with pytest.raises(AwsError) as caught:
        verify(request, now=now)
    assert caught.value.status == 403
    return caught.value


# --- valid signatures ---


@pytest.mark.parametrize(
    "request_",
    [
        lambda: signed(),
        lambda: signed(f"{URL}/123456789012/mail"),
        lambda: signed(f"{URL}/some%20path/./a/../mail.fifo/"),
        lambda: signed("http://sqs.local/", body="żółw".encode()),
        lambda: signed(token="SESSION"),
        lambda: signed(region="mars-north-7"),
        lambda: signed(region="Local_dev.1"),
        lambda: signed(f"{URL}/?b=2&a=%C5%BC&a=1&empty=", method="GET", body=b""),
        lambda: signed(headers={"x-amz-user-agent": "  a   b ", "amz-sdk-request": "attempt=1"}),
        lambda: signed(headers={"x-amz-user-agent": "voilà, ça: Åpp"}),
        lambda: signed(headers={"X-Amz-Content-SHA256": "UNSIGNED-PAYLOAD"}),
        lambda: presigned(f"{URL}/123456789012/mail?Action=ReceiveMessage&X=a%2Bb%20c"),
        lambda: presigned(f"{URL}/?Action=ListQueues", token="SESSION+/="),
    ],
)
def test_a_request_that_botocore_signs_is_accepted(request_):
    assert verify(request_()) is SIGNER


def test_a_blank_may_arrive_as_a_plus_sign():
    request = presigned(f"{URL}/?Action=ListQueues&QueueNamePrefix=a%20b")
    request.query_bytes = request.query_bytes.replace(b"a%20b", b"a+b")

    assert verify(request) is SIGNER


def test_a_date_header_will_do():
    request = signed(headers={"Date": "Sun, 01 Mar 2026 12:00:00 GMT"})

    assert b"x-amz-date" not in request.headers
    assert verify(request) is SIGNER


# --- invalid signatures ---


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("method", lambda r: setattr(r, "method", "PUT")),
        ("path", lambda r: setattr(r, "path", "/123456789012/other")),
        ("query", lambda r: setattr(r, "query_bytes", b"a=1")),
        ("body", lambda r: setattr(r, "body", r.body + b" ")),
        ("host", lambda r: r.headers.update({b"host": b"localhost:7421"})),
        ("signed header", lambda r: r.headers.update({b"x-amz-target": b"AmazonSQS.PurgeQueue"})),
        ("no signed header", lambda r: r.headers.pop(b"x-amz-target")),
    ],
)
def test_any_change_of_a_signed_request_is_found(name, change):
    request = signed(headers={"X-Amz-Target": "AmazonSQS.ListQueues"})
    verify(request)

    change(request)

    assert refused(request).code == "SignatureDoesNotMatch"


def test_a_hash_in_the_header_does_not_replace_the_body():
    request = signed(headers={"X-Amz-Content-SHA256": "0" * 64})

    assert refused(request).code == "SignatureDoesNotMatch"


def test_unsigned_payload_counts_only_if_it_was_signed():
    request = signed()
    request.headers[b"x-amz-content-sha256"] = b"UNSIGNED-PAYLOAD"

    assert refused(request).code == "SignatureDoesNotMatch"


def test_a_presigned_url_cannot_be_changed():
    request = presigned(f"{URL}/?Action=ListQueues")
    request.query_bytes = request.query_bytes.replace(b"ListQueues", b"PurgeQueue")

    assert refused(request).code == "SignatureDoesNotMatch"


def test_a_presigned_url_cannot_be_made_to_last_longer():
    request = presigned(f"{URL}/?Action=ListQueues", expires=60)
    request.query_bytes = request.query_bytes.replace(b"Expires=60", b"Expires=9999")

    assert refused(request).code == "SignatureDoesNotMatch"


def test_a_wrong_secret_does_not_match():
    error = refused(signed(secret="another"))

    assert error.code == "SignatureDoesNotMatch"
    assert error.message.startswith("The request signature we calculated does not match")


def test_a_secret_that_has_changed_does_not_match_any_more():
    request = signed()
    verify(request)

    with pytest.raises(AwsError):
        sigv4.verify(
            request, now=NOW_MS, signer_of=lambda key: Signer(ANYONE, "another"), service="sqs"
        )


def test_an_unknown_key_is_an_invalid_token():
    request = signed()
    with pytest.raises(AwsError) as caught:
        sigv4.verify(request, now=NOW_MS, signer_of=lambda key: None, service="sqs")

    assert caught.value.code == "InvalidClientTokenId"
    assert caught.value.message == "The security token included in the request is invalid."


@pytest.mark.parametrize("authorization", [b"", b"Bearer pk_1_2", b"Basic eDp5"])
def test_without_a_signature_a_token_is_missing(authorization):
    request = signed()
    request.headers[b"authorization"] = authorization

    assert refused(request).code == "MissingAuthenticationToken"


def test_a_signature_for_another_service_is_not_for_us():
    error = refused(signed(service="sns"))

    assert error.code == "SignatureDoesNotMatch"
    assert "correct service: 'sqs'" in error.message


@pytest.mark.parametrize("region", ["x" * 41, "eu+west", "eu west", "é"])
def test_a_region_is_a_short_name(region):
    before = sigv4._signing_key.cache_info().misses

    error = refused(signed(region=region))

    assert "scoped to a valid region" in error.message
    assert sigv4._signing_key.cache_info().misses == before  # nothing of it is cached


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (b"Signature=", b"Sign=", "requires 'Signature' parameter"),
        (b"SignedHeaders=", b"Headers=", "requires 'SignedHeaders' parameter"),
        (b"Credential=", b"Cred=", "requires 'Credential' parameter"),
        (b"/sqs/", b"-sqs-", "exactly 5 slash-delimited elements"),
    ],
)
def test_a_signature_that_lacks_a_part_is_incomplete(old, new, text):
    request = signed()
    request.headers[b"authorization"] = request.headers[b"authorization"].replace(old, new)

    error = refused(request)

    assert error.code == "IncompleteSignature"
    assert text in error.message


@pytest.mark.parametrize("date", [b"", b"yesterday", b"20261301T000000Z", b"2026-03-01T12:00:00Z"])
def test_a_signature_without_a_date_is_incomplete(date):
    request = signed()
    request.headers[b"x-amz-date"] = date

    assert refused(request).code == "IncompleteSignature"


@pytest.mark.parametrize("expires", [b"0", b"604801", b"x", b"", b"-1"])
def test_a_presigned_url_lasts_a_second_to_a_week(expires):
    request = presigned(f"{URL}/?Action=ListQueues", expires=77)
    request.query_bytes = request.query_bytes.replace(b"Expires=77", b"Expires=" + expires)

    assert refused(request).code == "IncompleteSignature"


def test_the_host_must_be_signed():
    request = signed()
    request.headers[b"authorization"] = request.headers[b"authorization"].replace(b"host;", b"")

    assert "'Host' must be" in refused(request).message


@pytest.mark.parametrize("name", [b"x-amz-target", b"x-amz-security-token", b"x-amz-anything"])
@pytest.mark.parametrize("sign", [signed, lambda: presigned(f"{URL}/?Action=GetQueueUrl")])
def test_headers_that_describe_the_request_must_be_signed(sign, name):
    request = sign()
    verify(request)

    request.headers[name] = b"AmazonSQS.ListQueues"

    error = refused(request)
    assert error.code == "SignatureDoesNotMatch"
    assert f"'{name.decode()}' must be a 'SignedHeader'" in error.message


def test_headers_that_proxies_add_need_not_be_signed():
    request = signed()
    request.headers |= {b"x-amzn-trace-id": b"Root=1", b"x-forwarded-for": b"10.0.0.1"}

    assert verify(request) is SIGNER


def test_the_scopes_date_is_the_day_of_the_signature():
    request = signed()
    request.headers[b"x-amz-date"] = b"20260228T120000Z"

    assert "Date in Credential scope does not match" in refused(request).message


# --- time ---


@pytest.mark.parametrize("minutes", [-15, 0, 15])
def test_clocks_may_differ_by_a_quarter_of_an_hour(minutes):
    assert verify(signed(), now=NOW_MS + minutes * MINUTE) is SIGNER


def test_an_old_signature_has_expired():
    error = refused(signed(), now=NOW_MS + 15 * MINUTE + 1)

    assert error.code == "SignatureDoesNotMatch"
    assert error.message == (
        "Signature expired: 20260301T120000Z is now earlier than 20260301T120000Z "
        "(20260301T121500Z - 15 min.)"
    )


def test_a_signature_from_the_future_is_not_taken():
    error = refused(signed(), now=NOW_MS - 15 * MINUTE - 1)

    assert error.message.startswith("Signature not yet current: 20260301T120000Z is still later ")


def test_a_presigned_url_is_good_until_it_expires():
    request = presigned(f"{URL}/?Action=ListQueues", expires=3600)

    assert verify(request, now=NOW_MS + 60 * MINUTE) is SIGNER
    assert "Signature expired" in refused(request, now=NOW_MS + 60 * MINUTE + 1).message
    assert "not yet current" in refused(request, now=NOW_MS - 16 * MINUTE).message
