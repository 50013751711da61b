"""Load of Amazon SQS queues: GetQueueAttributes, signed without the AWS SDK.

The API of SQS reports neither rates nor ages.  Its counts are approximate by design and become
accurate within a minute.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from urllib.parse import quote

import aiohttp
import msgspec
from yarl import URL

from penstock.domain.access.aws_signature import signing_key
from penstock.domain.datetimes import moment_of
from penstock.domain.errors import QueueUnknown
from penstock.domain.scaling.fleet_sources import SqsSource
from penstock.domain.scaling.recommendation import Sample
from penstock.outbound.http_source import HttpSource, Session
from penstock.ports.clock import Clock
from penstock.ports.scaling import LoadSource

_ALGORITHM = "AWS4-HMAC-SHA256"
_READY = "ApproximateNumberOfMessages"
_LEASED = "ApproximateNumberOfMessagesNotVisible"
_MISSING = ("QueueDoesNotExist", "NonExistentQueue")
_MAX_CHARS = 300


class Credentials(msgspec.Struct, frozen=True):
    access_key: str
    secret_key: str
    session_token: str | None = None


def signed_headers(
    url: URL,
    payload: bytes,
    headers: Mapping[str, str],
    *,
    who: Credentials,
    region: str,
    service: str,
    now: int,
) -> dict[str, str]:
    """AWS signature version 4: `headers` plus the signature's own, for a POST without a query."""
    moment = moment_of(now)
    date, at = moment.strftime("%Y%m%d"), moment.strftime("%Y%m%dT%H%M%SZ")
    port = "" if url.is_default_port() else f":{url.port}"
    sent = {**headers, "Host": f"{url.host}{port}", "X-Amz-Date": at}
    if who.session_token is not None:
        sent["X-Amz-Security-Token"] = who.session_token
    names = sorted(name.lower() for name in sent)
    lines = sorted(f"{name.lower()}:{' '.join(value.split())}\n" for name, value in sent.items())
    signed, path = ";".join(names), quote(url.raw_path, safe="/-_.~")
    hashed = hashlib.sha256(payload).hexdigest()
    canonical = f"POST\n{path}\n\n{''.join(lines)}\n{signed}\n{hashed}"
    scope = f"{date}/{region}/{service}/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    key = signing_key(who.secret_key, date=date, region=region, service=service)
    signature = hmac.digest(key, f"{_ALGORITHM}\n{at}\n{scope}\n{digest}".encode(), "sha256").hex()
    credential = f"{who.access_key}/{scope}"
    return {
        **sent,
        "Authorization": f"{_ALGORITHM} Credential={credential}, SignedHeaders={signed}, "
        f"Signature={signature}",
    }


class _QueueUrl(msgspec.Struct, rename="pascal"):
    queue_url: str


class _Attributes(msgspec.Struct, rename="pascal"):
    attributes: dict[str, str]


class _Refused(msgspec.Struct):
    type: str = msgspec.field(default="", name="__type")
    message: str = ""


class SqsLoad(LoadSource):
    def __init__(self, name: str, spec: SqsSource, *, wall: Clock | None = None) -> None:
        """Sends nothing yet.  `wall`: the time to sign with; the caller's `now` if None."""
        endpoint = spec.endpoint or f"https://sqs.{spec.region}.amazonaws.com"
        self._spec = spec
        self._wall = wall
        self._http = HttpSource(name, "SQS", endpoint, timeout_ms=spec.timeout_ms)
        self._urls: dict[str, str] = {}  # by the queue's name

    def read(self, queue: str, staging_indicator: str | None, *, now: int) -> Sample:
        who = self._credentials()
        now = now if self._wall is None else self._wall.now()

        async def query(session: Session) -> Sample:
            url = self._urls.get(queue) or await self._url(session, queue, who, now)
            params = {"QueueUrl": url, "AttributeNames": [_READY, _LEASED]}
            try:
                body = await self._call(session, "GetQueueAttributes", params, queue, who, now)
            except QueueUnknown:
                self._urls.pop(queue, None)
                raise
            self._urls[queue] = url
            found = self._http.decode(body, _Attributes).attributes
            return Sample(ready=self._number(found, _READY), leased=self._number(found, _LEASED))

        return self._http.ask(query, {})

    async def _url(self, session: Session, queue: str, who: Credentials, now: int) -> str:
        if "://" in queue:
            return queue
        params = {"QueueName": queue}
        if self._spec.account is not None:
            params["QueueOwnerAWSAccountId"] = self._spec.account
        body = await self._call(session, "GetQueueUrl", params, queue, who, now)
        return self._http.decode(body, _QueueUrl).queue_url

    async def _call(
        self,
        session: Session,
        operation: str,
        params: Mapping[str, object],
        queue: str,
        who: Credentials,
        now: int,
    ) -> bytes:
        url, payload = URL(f"{self._http.endpoint}/"), msgspec.json.encode(params)
        plain = {
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": f"AmazonSQS.{operation}",
        }
        headers = signed_headers(
            url, payload, plain, who=who, region=self._spec.region, service="sqs", now=now
        )
        async with session.post(
            url, data=payload, headers=headers, allow_redirects=False
        ) as answer:
            if answer.status != 200:
                await self._raise_refused(answer, queue)
            return await self._http.body(answer)

    async def _raise_refused(self, answer: aiohttp.ClientResponse, queue: str) -> None:
        try:
            why = msgspec.json.decode(await self._http.body(answer), type=_Refused)
        except msgspec.MsgspecError:
            why = _Refused()
        code = why.type.rpartition("#")[2]
        if any(code.endswith(missing) for missing in _MISSING):
            raise QueueUnknown(f"source {self._http.name}: SQS has no queue {queue!r}")
        text = f"it answered {answer.status}"
        if code or why.message:
            text += f": {' '.join(filter(None, (code, why.message)))[:_MAX_CHARS]}"
        raise self._http.trouble(text)

    def _number(self, found: Mapping[str, str], name: str) -> int:
        text = found.get(name, "")
        if not text.isascii() or not text.isdecimal():
            raise self._http.trouble(f"it does not report {name}")
        return int(text)

    def _credentials(self) -> Credentials:
        spec = self._spec
        access = self._http.secret("key", file=None, variable=spec.access_key_env)
        secret = self._http.secret("key", file=None, variable=spec.secret_key_env)
        assert access is not None  # a missing variable raises
        assert secret is not None
        return Credentials(access, secret, os.environ.get(spec.session_token_env) or None)
