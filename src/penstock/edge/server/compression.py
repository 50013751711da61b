"""Responses compressed with gzip, where that pays.

Only answers to GET and HEAD: claims, sends and acts are the hot path, and their bodies small or
wanted at once.  What must not be stored by caches is not compressed either: it contains secrets,
and the size of a compressed answer could reveal parts of them.
"""

from __future__ import annotations

import re
import zlib

from msgspec.structs import replace

from penstock.edge.server.request import Request, Response

MIN_BYTES = 2_048  # about what fits into the first packets anyway
MAX_BYTES = 4 * 1024 * 1024  # more would stop the event loop for too long
GZIP = (b"content-encoding", b"gzip")
VARY = (b"vary", b"accept-encoding")
_FAST, _BEST = 1, 9
_WINDOW = 31  # zlib's sign for gzip
_METHODS = frozenset({"GET", "HEAD"})
_MEDIA = re.compile(rb"application/(json|openapi)|text/")
# Possessive: with backtracking, many spaces would take quadratic time.
_ACCEPTED = re.compile(
    rb"(?:^|,)\s*+(?:gzip|\*)\s*+(?:;\s*+q=(?!0(?:\.0*+)?\s*+(?:,|$))[^,]*+)?\s*+(?:,|$)", re.I
)


def accepts_gzip(headers: dict[bytes, bytes]) -> bool:
    return _ACCEPTED.search(headers.get(b"accept-encoding", b"")) is not None


def gzipped(body: bytes, *, is_kept: bool = False) -> bytes:
    """`is_kept`: it is compressed once and sent many times."""
    packer = zlib.compressobj(_BEST if is_kept else _FAST, zlib.DEFLATED, _WINDOW)
    return packer.compress(body) + packer.flush()


def compressed(request: Request, response: Response) -> Response:
    """The response as it is sent: compressed, if the client accepts that and it pays."""
    if (
        request.method not in _METHODS
        or not MIN_BYTES <= len(response.body) <= MAX_BYTES
        or not _MEDIA.match(response.content_type)
        or any(name == GZIP[0] or value == b"no-store" for name, value in response.headers)
    ):
        return response
    if not accepts_gzip(request.headers):
        return replace(response, headers=(*response.headers, VARY))
    headers = tuple(
        (name, weak(value) if name == b"etag" else value) for name, value in response.headers
    )
    return replace(response, body=gzipped(response.body), headers=(*headers, GZIP, VARY))


def weak(etag: bytes) -> bytes:
    """The tag of a compressed body, whose bytes are not those of the plain one."""
    return etag if etag.startswith(b"W/") else b"W/" + etag
