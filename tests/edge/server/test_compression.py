"""Responses are compressed where the client accepts it and it pays, and nowhere else."""

from __future__ import annotations

import pytest

from penstock.edge.server.compression import accepts_gzip, compressed, gzipped
from penstock.edge.server.request import Request, Response
from tests.edge.api import Api, ok

GZIP = {"accept-encoding": "gzip"}


@pytest.mark.parametrize(
    ("header", "is_accepted"),
    [
        ("gzip", True),
        ("gzip, deflate, br, zstd", True),
        ("br;q=1.0, GZIP;q=0.8", True),
        ("*", True),
        ("gzip;q=0", False),
        ("gzip; q=0.0, br", False),
        ("identity", False),
        ("x-gzip-like", False),
        ("", False),
    ],
)
def test_a_client_accepts_gzip_only_by_saying_so(header: str, is_accepted: bool) -> None:
    assert accepts_gzip({b"accept-encoding": header.encode()}) is is_accepted


def test_a_header_of_very_many_spaces_is_read_once() -> None:
    many = b" " * 1_000_000  # a pattern that backtracks would take hours

    assert not accepts_gzip({b"accept-encoding": b"gzip" + many + b"x"})
    assert accepts_gzip({b"accept-encoding": b"gzip;" + many + b"q=1" + many})


def test_a_list_is_compressed_and_reads_the_same(api: Api) -> None:
    queue = api.make_queue()
    api.send_many(queue, ["x" * 100] * 100)
    path = f"/v1/queues/{queue}/messages"

    plain = api.call("GET", path, headers={"accept-encoding": "identity"})
    packed = api.call("GET", path, headers=GZIP)

    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content) / 5
    assert ok(packed) == ok(plain)
    assert plain.headers["vary"] == packed.headers["vary"] == "accept-encoding"
    head = api.call("HEAD", path, headers=GZIP)
    assert head.headers["content-length"] == packed.headers["content-length"]


def test_claims_and_small_responses_are_not_compressed(api: Api) -> None:
    queue = api.make_queue()
    api.send_many(queue, ["x" * 100] * 100)

    claimed = api.call("POST", f"/v1/queues/{queue}/claims", {"limit": 100}, headers=GZIP)
    small = api.call("GET", "/v1/stats", headers=GZIP)

    for response in (claimed, small):
        ok(response)
        assert "content-encoding" not in response.headers
    assert len(claimed.content) > 10_000


def test_secrets_and_other_media_are_not_compressed() -> None:
    request = Request("GET", "/x", b"", {b"accept-encoding": b"gzip"}, b"")
    body = b"x" * 10_000

    for response in (
        Response(200, body, headers=((b"cache-control", b"no-store"),)),
        Response(200, gzipped(body), headers=((b"content-encoding", b"gzip"),)),
        Response(200, body, content_type=b"application/octet-stream"),
        Response(200, b"x" * (4 * 1024 * 1024 + 1)),
    ):
        assert compressed(request, response) is response
    assert compressed(request, Response(200, body)).body == gzipped(body)
