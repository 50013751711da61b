"""A known request head is not parsed again, and the result is the same."""

from __future__ import annotations

import asyncio
from enum import Enum
from itertools import pairwise
from typing import Any, cast

from hypothesis import example, given
from hypothesis import strategies as st

from penstock.domain.access.api_key import Role
from penstock.domain.errors import PenstockError
from penstock.edge.server.errors import error_response
from penstock.edge.server.protocol import HttpConnection
from penstock.edge.server.request import Request, RequestHeadCache, Respond, Response
from penstock.edge.server.traffic import Traffic
from tests.edge.live import LiveServer
from tests.edge.raw import Raw, request
from tests.edge.server.wire import Wire

REQUESTS = [
    request("POST", "/a", b"12345678"),
    request("POST", "/b", b"abcdefgh"),
    request("POST", "/a", b"1234"),
    request("PUT", "/a?q=1", b""),
    request("GET", "/a"),
    request("GET", "/a", headers={"Connection": "keep-alive"}),
    request("GET", "/a", headers={"X-Trace": "7"}),
    request("POST", "/a", b"2\r\n\r\n\r\n0\r\n\r\n", headers={"X": "1"}),
    b"POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
    b"\r\nGET /c HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET /c HTTP/1.1\nHost: h\n\n",
    b"GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n",
    request("GET", "/a", headers={"Connection": "close"}),
    b"GET /a HTTP/1.0\r\nHost: h\r\n\r\n",
    request("POST", "/a", b"12345678", headers={"Content-Encoding": "gzip"}),
    request("GET", "/a", headers={"Upgrade": "x", "Connection": "upgrade"}),
    request("POST", "/a", b"12345678", headers={"Expect": "100-continue"}),
    request("CONNECT", "/a"),
    *(
        f"GET /a HTTP/{version}\r\nHost: h\r\n{name}: keep-alive\r\n\r\n".encode()
        for version in ("0.9", "1.0", "1.1", "2.0")
        for name in ("Connection", "Proxy-Connection")
    ),
    b"nonsense\r\n\r\n",
]


class Answers(Enum):
    AT_ONCE = 0
    AFTER_EACH_PIECE = 1
    AT_THE_END = 2


@st.composite
def pieces(draw: st.DrawFn) -> list[bytes]:
    """Requests in sequence, cut anywhere; most arrive in one piece, as from most clients."""
    sent = draw(st.lists(st.sampled_from(REQUESTS), min_size=1, max_size=8))
    if draw(st.booleans()):
        return sent
    whole = b"".join(sent)
    inside = st.integers(min_value=1, max_value=len(whole) - 1)
    cuts = sorted({0, len(whole), *draw(st.lists(inside, max_size=6))})
    return [whole[start:end] for start, end in pairwise(cuts)]


CONFUSING = (request("POST", "/1", b"x" * 40), request("POST", "/2", b"y" * 52))


@given(before=pieces(), then=pieces(), answers=st.sampled_from(Answers))
@example(
    # The body of the second is as long as the body of the first and the part of the second in the
    # first piece: a parser that looks only at lengths takes the first head for the second request.
    before=[CONFUSING[0] + CONFUSING[1][:12], CONFUSING[1][12:]],
    then=[CONFUSING[0]],
    answers=Answers.AT_ONCE,
)
def test_a_cached_head_gives_the_request_that_the_parser_would_have_read(
    before: list[bytes], then: list[bytes], answers: Answers
) -> None:
    asyncio.run(_compare(before, then, answers))


async def _compare(before: list[bytes], then: list[bytes], answers: Answers) -> None:
    parsed = _Side(answers, _NoCache())
    expected = [parsed.take(before), parsed.take(then), parsed.take(then)]

    recognised = _Side(answers, RequestHeadCache())
    assert [recognised.take(before), recognised.take(then), recognised.take(then)] == expected


def test_a_head_that_came_before_needs_no_parser() -> None:
    async def ask() -> list[Any]:
        side = _Side(Answers.AT_ONCE, RequestHeadCache())
        once = side.take([REQUESTS[0]])
        connection = HttpConnection(side.traffic)
        connection.connection_made(Wire())
        connection._parser = cast(Any, None)  # using it raises
        connection.data_received(REQUESTS[0])
        return [once[0], side.seen[-1]]

    once, again = asyncio.run(ask())

    assert once == again


def test_whether_an_encoded_body_is_accepted_is_checked_each_time() -> None:
    coded = request("POST", "/a", b"12345678", headers={"Content-Encoding": "gzip"})

    async def ask() -> list[Any]:
        side = _Side(Answers.AT_ONCE, RequestHeadCache())
        side.traffic.accepts_encoded = lambda target: True
        taken = side.take([coded])
        side.traffic.accepts_encoded = lambda target: False
        return [taken, side.take([coded])]

    taken, refused = asyncio.run(ask())

    assert b"200 OK" in taken[-2][0]
    assert b"415 " in refused[-2][0]


def test_endless_request_heads_do_not_fill_the_memory() -> None:
    heads, wire = RequestHeadCache(), Wire()
    all_of_them = [request("GET", f"/{number}") for number in range(3_000)]
    for raw in all_of_them:
        heads.learn(raw, Request("GET", "/", b"", {}, b""))

    known = [raw for raw in all_of_them if heads.recognise(raw, wire) is not None]

    assert all_of_them[-1] in known
    assert len(known) <= 1_000


def test_a_long_head_is_not_remembered() -> None:
    heads, long = RequestHeadCache(), request("GET", "/" + "x" * 2_000)

    heads.learn(long, Request("GET", "/x", b"", {}, b""))

    assert heads.recognise(long, Wire()) is None


def test_a_revoked_key_is_rejected_even_if_its_request_head_is_cached(
    server_with_keys: LiveServer,
) -> None:
    keys = server_with_keys.broker.keys
    made = keys.create("to be taken back", roles=(Role.READ,), queues=("*",)).result()
    server_with_keys.broker.refresh_keys()
    ask = request("GET", "/v1/queues", headers={"Authorization": f"Bearer {made.secret}"})
    with Raw(server_with_keys.port) as wire:
        assert [wire.ask(ask).status for _ in range(3)] == [200, 200, 200]

        keys.revoke(made.key.key_id).result()
        server_with_keys.broker.refresh_keys()

        assert wire.ask(ask).status == 401


class _NoCache(RequestHeadCache):
    def learn(self, data: bytes, request: Request) -> None:
        pass


class _Side:
    """Connections, one after another, that share a cache of heads."""

    def __init__(self, answers: Answers, heads: RequestHeadCache) -> None:
        self.seen: list[Any] = []
        self.later: list[Respond] = []
        self._answers = answers
        self.traffic = Traffic(
            self._handle,
            refuse=self._refuse,
            max_body_bytes=1_000,
            receive_timeout=30,
            idle_timeout=30,
            max_connections=10,
        )
        self.traffic.heads = heads

    def _refuse(self, request: Request, error: PenstockError) -> Response:
        self.seen.append((request.method, request.path, dict(request.headers), str(error)))
        return error_response(error)

    def _handle(self, request: Request, respond: Respond) -> None:
        heard = (request.method, request.path, request.query_bytes, dict(request.headers))
        self.seen.append((*heard, request.body))
        if self._answers is Answers.AT_ONCE:
            respond(Response(200, b"{}"))
        else:
            self.later.append(respond)

    def _answer(self) -> None:
        while self.later:
            self.later.pop(0)(Response(200, b"{}"))

    def take(self, pieces: list[bytes]) -> list[Any]:
        self.seen = []
        transport = Wire()
        connection = HttpConnection(self.traffic)
        connection.connection_made(transport)
        for piece in pieces:
            if not transport.is_open or transport.is_paused:
                break
            connection.data_received(piece)
            if self._answers is Answers.AFTER_EACH_PIECE:
                self._answer()
        self._answer()
        connection.connection_lost(None)
        return [*self.seen, transport.is_paused, transport.written, transport.is_open]
