"""Malformed requests are rejected or cut off at once, and none of their content is returned."""

from __future__ import annotations

import re
from contextlib import suppress

import pytest

from penstock.edge.server.bounds import MAX_HEADER_BYTES
from tests.edge.process import ServerProcess
from tests.edge.raw import Raw, request

PATIENCE_S = 60.0
INJECTED = b"X-Injected: yes"

HEAD = b"POST /v1/queues/victim/messages HTTP/1.1\r\nHost: localhost\r\n"
JSON = b"Content-Type: application/json\r\n"
BODY = b'{"body": 1}'
SMUGGLED = b"DELETE /v1/queues/victim?force=true HTTP/1.1\r\nHost: localhost\r\n\r\n"

KINDS = {
    "content-length and chunked": HEAD
    + JSON
    + b"Content-Length: 11\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    + SMUGGLED,
    "two content-lengths": HEAD + b"Content-Length: 11\r\nContent-Length: 0\r\n\r\n" + BODY,
    "a list of content-lengths": HEAD + b"Content-Length: 11, 11\r\n\r\n" + BODY,
    "a signed content-length": HEAD + b"Content-Length: +11\r\n\r\n" + BODY,
    "a negative content-length": HEAD + b"Content-Length: -1\r\n\r\n" + BODY,
    "a content-length in hexadecimal": HEAD + b"Content-Length: 0xb\r\n\r\n" + BODY,
    "an enormous content-length": HEAD + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n",
    "an obscure transfer-encoding": HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked, but not at last": HEAD + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "something before chunked": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a tab before chunked": HEAD + b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    "an invalid chunk size": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
    "an enormous chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 20 + b"\r\n",
    "a chunk that does not end": HEAD
    + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}XX0\r\n\r\n"
    + SMUGGLED,
    "a space before the colon": HEAD + b"Content-Length : 11\r\n\r\n" + BODY,
    "a folded header": HEAD + b"X-A: 1\r\n 2\r\n\r\n",
    "a NUL in a header": HEAD + b"X-A: a\x00b\r\n\r\n",
    "a bare line feed": HEAD.replace(b"\r\n", b"\n") + b"\n",
    "a bare carriage return": HEAD + b"X-A: 1\r" + INJECTED + b"\r\n\r\n",
    "a NUL in the path": request("GET", "/healthz\x00"),
    "a space in the path": request("GET", "/healthz x"),
    "a high byte in the path": request("GET", "/healthz\xff"),
    "a path of 100 kB": request("GET", "/" + "a" * 100_000),
    "headers of 100 kB": request("GET", "/healthz", headers={"X-A": "a" * 100_000}),
    "a thousand headers": request("GET", "/healthz", headers={f"X-{n}": "a" for n in range(1_000)}),
    "no host": b"GET /healthz HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
    "no version": b"GET /healthz\r\n\r\n",
    "a version of the future": b"GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "a version that says 2": b"GET /healthz HTTP/2.0\r\nHost: localhost\r\n\r\n",
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "an invalid method": b"G@T /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a lower-case method": b"get /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a tunnel": b"CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a protocol switch with a body": HEAD
    + JSON
    + b"Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 11\r\n\r\n"
    + BODY,
    "the start of TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 500,
    "nothing but zeros": b"\x00" * 5_000,
    "nothing but line ends": b"\r\n" * 5_000,
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_malformed_request_is_rejected(target: ServerProcess, victim: str, kind: str) -> None:
    attack = KINDS[kind].replace(b"/victim", f"/{victim}".encode())

    with Raw(target.port, patience_s=PATIENCE_S) as wire:
        with suppress(ConnectionError):  # cut off before everything was sent
            wire.send(attack)
        answer = wire.rest()

    assert answer == b"" or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.1 501", b"HTTP/1.1 505"))
    assert len(re.findall(rb"HTTP/1\.1 \d{3} ", answer)) <= 1, (
        "nothing behind it was taken for a request"
    )
    assert b"Traceback" not in answer
    assert INJECTED not in answer


PATHS = [
    "/../etc/passwd",
    "/v1/../../etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/docs/../../../etc/passwd",
    "/docs/%2e%2e%2fpyproject.toml",
    "/v1/queues/..%2f..%2fetc%2fpasswd",
    "/v1/queues/%0d%0aX-Injected:%20yes",
    "/v1/messages/%0d%0a%0d%0aX-Injected:%20yes",
    "/v1/queues/a?cursor=%0d%0aX-Injected:%20yes",
    "/v1/queues/%00",
    "/v1/queues/%c0%ae",
    "/v1/queues/%",
    "/v1/queues/%zz",
    "/v1/queues/%F0%9F%92%A9",
    "/v1//queues",
    "/v1/queues;a=b",
    "http://evil.example/v1/queues/a",
    "*",
    "//evil.example/",
    "/v1/history?kind=" + "%41" * 5_000,
    "/v1/queues?" + "&".join(f"a{n}=1" for n in range(100)),
]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_leads_astray_leads_nowhere(target: ServerProcess, path: str) -> None:
    with Raw(target.port, patience_s=PATIENCE_S) as wire:
        answer = wire.ask(request("GET", path))

    assert 400 <= answer.status < 500 or (answer.status, answer.body) == (
        200,
        b'{"endings":[],"next":null}',
    )
    assert b"root:" not in answer.body
    assert not [name for name in answer.headers if "injected" in name]


CHUNKED = b"POST /v1/queues/x/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("at_once", [True, False], ids=["in one piece", "in two pieces"])
@pytest.mark.parametrize(
    "start",
    [
        b"GET /healthz HTTP/1.1\r\nHost: x\r\na: ",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n",
        CHUNKED + b"1\r\n1\r\n0\r\na: ",
        CHUNKED + b"1\r\n1\r\n0\r\n",
        CHUNKED + b"1;",
    ],
    ids=["value", "name", "trailer value", "trailer name", "chunk extension"],
)
def test_a_line_that_does_not_end_is_cut_at_the_limit_of_the_head(
    target: ServerProcess, start: bytes, at_once: bool
) -> None:
    # Not a byte more: closing with unread data discards the response.
    line = b"a" * (MAX_HEADER_BYTES + 1)
    wire = Raw(target.port)
    if at_once:
        wire.send(start, line)
    else:
        wire.send(start).send(line)

    assert wire.answer().status == 400
    assert wire.is_closed()
    wire.close()
