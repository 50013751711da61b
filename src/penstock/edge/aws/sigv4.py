"""AWS signature version 4, in the Authorization header or in the query string.

Pure: `now` and `signer_of` are passed in.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from urllib.parse import quote, unquote_to_bytes

import msgspec

from penstock.domain.access.aws_signature import signing_key
from penstock.domain.limits import MINUTE, SECOND
from penstock.edge.aws import errors
from penstock.edge.server.request import Request
from penstock.services.access import Signer

ALGORITHM = "AWS4-HMAC-SHA256"
SKEW_MS = 15 * MINUTE
LONGEST_EXPIRY = 7 * 24 * 3600
UNSIGNED = "UNSIGNED-PAYLOAD"
_START = f"{ALGORITHM} "  # of the header Authorization

SignerOf = Callable[[str], Signer | None]  # by access key id

_TIME = "%Y%m%dT%H%M%SZ"
_TIME_TEXT = re.compile(r"[0-9]{8}T[0-9]{6}Z")
_CREDENTIAL = re.compile(r"(.+)/([^/]+)/([^/]+)/([^/]+)/([^/]+)")
_REGION = re.compile(r"[A-Za-z0-9_.-]{1,40}")  # limited, because signing keys are cached
_SAFE = "-_.~"
_signing_key = lru_cache(maxsize=1024)(signing_key)
_NEEDED = ("Credential", "SignedHeaders", "Signature")


class _Signature(msgspec.Struct, frozen=True):
    """The signature of a request and its parameters."""

    access_key_id: str
    date: str
    region: str
    service: str
    terminator: str
    signed_headers: tuple[str, ...]
    signature: str
    signed_at: str  # as signed: 20261231T235959Z
    expires_in: int | None = None  # seconds; only in presigned URLs

    @property
    def scope(self) -> str:
        return f"{self.date}/{self.region}/{self.service}/{self.terminator}"


def verify(request: Request, *, now: int, signer_of: SignerOf, service: str) -> Signer:
    """Return the signer; raises AwsError (403) if the signature is invalid."""
    found = _read(request)
    if found is None:
        raise errors.missing_authentication_token()
    signed_at = _check_scope(found, service)
    _check_headers(request.headers, found)
    signer = signer_of(found.access_key_id)
    if signer is None:
        raise errors.invalid_client_token_id()
    _check_time(found, signed_at, now)
    payload = _payload_hash(request)
    canonical = _canonical_request(request, found, payload)
    hashed = hashlib.sha256(canonical.encode("latin-1")).hexdigest()
    to_sign = f"{ALGORITHM}\n{found.signed_at}\n{found.scope}\n{hashed}"
    key = _signing_key(signer.secret, date=found.date, region=found.region, service=service)
    right = hmac.digest(key, to_sign.encode(), "sha256").hex()
    if not hmac.compare_digest(right.encode(), found.signature.encode()):
        raise errors.signature_does_not_match()
    return signer


# --- parameters of the signature ---


def _read(request: Request) -> _Signature | None:
    header = request.headers.get(b"authorization", b"").decode("latin-1")
    if header.startswith(_START):
        return _from_header(request, header)
    query = _pairs(request.query_bytes)
    given = {name.decode("latin-1"): value.decode("latin-1") for name, value in query}
    if given.get("X-Amz-Algorithm") == ALGORITHM:
        return _from_query(given)
    return None


def is_in_query(request: Request) -> bool:
    """Whether the signature is in the query string, as in a presigned URL."""
    if is_in_header(request):
        return False
    return any(name == b"X-Amz-Algorithm" for name, _ in _pairs(request.query_bytes))


def is_in_header(request: Request) -> bool:
    return request.headers.get(b"authorization", b"").startswith(_START.encode())


def _from_header(request: Request, header: str) -> _Signature:
    pairs = (part.partition("=") for part in header.removeprefix(_START).split(","))
    parts = {name.strip(): value.strip() for name, _, value in pairs}
    missing = [name for name in _NEEDED if not parts.get(name)]
    if missing:
        text = " ".join(f"Authorization header requires '{name}' parameter." for name in missing)
        raise errors.incomplete_signature(text)
    return _signature(parts, _date_header(request.headers))


def _from_query(given: dict[str, str]) -> _Signature:
    parts = {name: given.get(f"X-Amz-{name}", "") for name in (*_NEEDED, "Date", "Expires")}
    missing = [name for name, value in parts.items() if not value]
    if missing:
        text = " ".join(f"Query string requires 'X-Amz-{name}' parameter." for name in missing)
        raise errors.incomplete_signature(text)
    expires = parts["Expires"]
    if not (expires.isascii() and expires.isdigit() and len(expires) < 8):
        raise errors.incomplete_signature("X-Amz-Expires must be a number.")
    if not 1 <= int(expires) <= LONGEST_EXPIRY:
        raise errors.incomplete_signature("X-Amz-Expires must be between 1 and 604800 seconds.")
    return _signature(parts, parts["Date"], int(expires))


def _signature(parts: dict[str, str], signed_at: str, expires_in: int | None = None) -> _Signature:
    # An access key id may contain slashes; the rest of the scope may not.
    credential = _CREDENTIAL.fullmatch(parts["Credential"])
    if credential is None:
        raise errors.incomplete_signature(
            "Credential must have exactly 5 slash-delimited elements, e.g. "
            "keyid/date/region/service/term."
        )
    key_id, date, region, service, terminator = credential.groups()
    signed_headers = tuple(parts["SignedHeaders"].lower().split(";"))
    if "host" not in signed_headers:
        raise errors.signature_does_not_match("'Host' must be a 'SignedHeader'.")
    return _Signature(
        access_key_id=key_id,
        date=date,
        region=region,
        service=service,
        terminator=terminator,
        signed_headers=signed_headers,
        signature=parts["Signature"],
        signed_at=signed_at,
        expires_in=expires_in,
    )


def _date_header(headers: dict[bytes, bytes]) -> str:
    text = headers.get(b"x-amz-date") or headers.get(b"date") or b""
    given = text.decode("latin-1").strip()
    if _TIME_TEXT.fullmatch(given):
        return given
    try:
        return parsedate_to_datetime(given).astimezone(UTC).strftime(_TIME)
    except (ValueError, OverflowError):
        raise errors.incomplete_signature(
            "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header."
        ) from None


# --- time and scope ---


def _check_scope(found: _Signature, service: str) -> datetime:
    """Return when it was signed; raises if the scope is not for this service."""
    if found.service != service or found.terminator != "aws4_request":
        raise errors.signature_does_not_match(
            f"Credential should be scoped to correct service: '{service}'."
        )
    if not _REGION.fullmatch(found.region):
        raise errors.signature_does_not_match("Credential should be scoped to a valid region.")
    try:
        signed_at = datetime.fromisoformat(found.signed_at)
        is_well_formed = _TIME_TEXT.fullmatch(found.signed_at) is not None
    except ValueError:
        is_well_formed = False
    if not is_well_formed:
        raise errors.incomplete_signature(
            "Date must be in ISO-8601 'basic format', such as 20261231T235959Z."
        )
    if found.date != found.signed_at[:8]:
        raise errors.signature_does_not_match(
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from "
            "HTTP."
        )
    return signed_at


def _check_headers(headers: dict[bytes, bytes], found: _Signature) -> None:
    """Headers that select the operation must be signed, or a signature could be reused."""
    for name in headers:
        if name.startswith(b"x-amz-") and name.decode("latin-1") not in found.signed_headers:
            raise errors.signature_does_not_match(
                f"'{name.decode('latin-1')}' must be a 'SignedHeader'."
            )


def _check_time(found: _Signature, signed_at: datetime, now: int) -> None:
    at = int(signed_at.timestamp()) * SECOND
    good_for = SKEW_MS if found.expires_in is None else found.expires_in * SECOND
    if now > at + good_for:
        raise errors.signature_does_not_match(
            f"Signature expired: {found.signed_at} is now earlier than {_to_text(now - good_for)} "
            f"({_to_text(now)} - {_length(good_for)}.)"
        )
    if now < at - SKEW_MS:
        raise errors.signature_does_not_match(
            f"Signature not yet current: {found.signed_at} is still later than "
            f"{_to_text(now + SKEW_MS)} ({_to_text(now)} + 15 min.)"
        )


def _length(ms: int) -> str:
    return f"{ms // SECOND} s" if ms % MINUTE else f"{ms // MINUTE} min"


def _to_text(instant: int) -> str:
    return datetime.fromtimestamp(instant // SECOND, UTC).strftime(_TIME)


# --- the canonical request ---


def _payload_hash(request: Request) -> str:
    # The hash in the header must match the body, or the body would not be signed at all.
    if request.headers.get(b"x-amz-content-sha256") == UNSIGNED.encode():
        return UNSIGNED
    return hashlib.sha256(request.body).hexdigest()


def _canonical_request(request: Request, found: _Signature, payload: str) -> str:
    headers = request.headers
    lines = [
        f"{name}:{_fold(headers.get(name.encode('latin-1'), b''))}" for name in found.signed_headers
    ]
    return "\n".join(
        (
            request.method,
            _canonical_path(request.path),
            _canonical_query(request.query_bytes),
            *lines,
            "",
            ";".join(found.signed_headers),
            payload,
        )
    )


def _fold(value: bytes) -> str:
    """Split as bytes: str.split would also split at the second byte of some letters."""
    return b" ".join(value.split()).decode("latin-1")


def _canonical_path(path: str) -> str:
    if path in ("/", ""):
        return "/"
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            kept = kept[:-1]
        elif segment not in ("", "."):
            kept.append(segment)
    end = "/" if kept and path.endswith("/") else ""
    return quote("/" + "/".join(kept) + end, safe="/" + _SAFE)


def _canonical_query(query: bytes) -> str:
    if not query:
        return ""
    pairs = sorted(
        (quote(name, safe=_SAFE), quote(value, safe=_SAFE))
        for name, value in _pairs(query)
        if name != b"X-Amz-Signature"
    )
    return "&".join(f"{name}={value}" for name, value in pairs)


def _pairs(query: bytes) -> list[tuple[bytes, bytes]]:
    return [
        (unquote_to_bytes(name), unquote_to_bytes(value))
        for name, _, value in (
            part.partition(b"=") for part in query.replace(b"+", b" ").split(b"&") if part
        )
    ]
