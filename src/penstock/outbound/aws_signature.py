"""AWS signature version 4: the headers that sign our requests to AWS."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import quote

import msgspec
from yarl import URL

from penstock.domain.datetimes import moment_of

_ALGORITHM = "AWS4-HMAC-SHA256"


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
    """`headers` plus the signature's own, for a POST without a query."""
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
    key = f"AWS4{who.secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, f"{_ALGORITHM}\n{at}\n{scope}\n{digest}".encode(), "sha256").hex()
    credential = f"{who.access_key}/{scope}"
    return {
        **sent,
        "Authorization": f"{_ALGORITHM} Credential={credential}, SignedHeaders={signed}, "
        f"Signature={signature}",
    }
