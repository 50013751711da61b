"""Valid requests with a few bytes changed.  Seeded, so a failure can be repeated."""

from __future__ import annotations

import random
import select
import socket
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

import pytest

from tests.edge.api import Api
from tests.edge.process import ServerProcess
from tests.edge.raw import Raw, request

REQUESTS = 1_500
AT_ONCE = 100
ANSWER_S = 0.4
HANG_S = 5.0
INTERESTING = b'\x00\x01\x7f\x80\xff\r\n\t :;,%"\\/{}[]0-+eE'


@pytest.fixture
def corpus(target: ServerProcess) -> list[bytes]:
    api = Api(target.url)
    queue = api.make_queue("fuzz")
    message_id = api.send(queue, priority=5)
    api.send(queue)
    receipt = api.claim_one(queue)["receipt"]
    one, lease = f"/v1/queues/{queue}", f"/v1/leases/{receipt}"
    act = f'{{"acts": [{{"receipt": "{receipt}", "act": "extend", "lease_ms": 99}}]}}'
    api.close()
    return [
        request("PUT", one, b'{"lease_ms": 500, "backoff": {"type": "list", "delays_ms": [1, 2]}}'),
        request("PATCH", one, b'{"max_attempts": 3, "dead_letter_queue": null}'),
        request("GET", one),
        request("GET", "/v1/queues?prefix=f&limit=10&cursor=a"),
        request("POST", f"{one}/messages", b'{"body": {"a": "\\u00e9"}, "tags": ["x"]}'),
        request("POST", f"{one}/messages", b'{"body": null, "delay_ms": 5, "priority": -1}'),
        request("POST", f"{one}/messages", b'{"body": 1, "due_at": "2030-01-01T00:00:00Z"}'),
        request("POST", f"{one}/messages/batch", b'{"messages": [{"body": 1, "dedup_key": "k"}]}'),
        request("POST", f"{one}/claims", b'{"limit": 1, "wait_ms": 10, "claimed_by": "w"}'),
        request("GET", f"{one}/messages?state=ready&limit=5&cursor=WzAsMCwwXQ"),
        request("POST", f"{lease}/extend", b'{"lease_ms": 60000}'),
        request("POST", "/v1/leases/batch", act.encode()),
        request("GET", f"/v1/messages/{message_id}"),
        request("PATCH", f"/v1/messages/{message_id}", b'{"due_at": 1900000000000}'),
        request("POST", f"{one}/redrive", b'{"limit": 5}'),
        request("GET", "/v1/history?kind=a&tag=b&outcome=done&from=0&to=5&limit=7"),
        request("GET", f"/v1/history/{message_id}"),
        request("GET", "/metrics", headers={"Authorization": "Bearer pk_a_b", "Accept": "*/*"}),
    ]


def mutants(corpus: list[bytes], seed: int) -> Iterator[bytes]:
    dice = random.Random(seed)
    while True:
        victim = bytearray(dice.choice(corpus))
        for _ in range(dice.choice((1, 1, 1, 2, 4, 8))):
            _mutate(victim, dice)
        yield bytes(victim)


def _mutate(victim: bytearray, dice: random.Random) -> None:
    place = dice.randrange(len(victim))
    match dice.randrange(5):
        case 0:
            victim[place] = dice.randrange(256)
        case 1:
            victim[place] = dice.choice(INTERESTING)
        case 2:
            victim.insert(place, dice.choice(INTERESTING))
        case 3:
            del victim[place : place + dice.randint(1, 8)]
        case 4:
            victim[place:place] = victim[place : place + dice.randint(1, 64)]
    if not victim:
        victim.append(0)


def attack(port: int, requests: list[bytes]) -> list[bytes]:
    """Send all at once and return the responses; no connection may hang."""
    wires = {Raw(port, patience_s=HANG_S): asked for asked in requests}
    for wire, asked in wires.items():
        with suppress(OSError):
            wire.send(asked)
    quiet = {wire.socket: wire for wire in wires}
    while quiet:
        talking, _, _ = select.select(list(quiet), [], [], ANSWER_S)
        if not talking:
            break
        for found in talking:
            del quiet[found]
    answers = []
    for wire in wires:
        with suppress(OSError):
            wire.socket.shutdown(socket.SHUT_WR)  # the missing part is never sent
        answers.append(wire.rest())
        wire.close()
    return answers


def test_no_change_of_a_few_bytes_breaks_it(target: ServerProcess, corpus: list[bytes]) -> None:
    changed = mutants(corpus, seed=44)
    answered = 0
    for _ in range(REQUESTS // AT_ONCE):
        requests = list(islice(changed, AT_ONCE))

        for asked, answer in zip(requests, attack(target.port, requests), strict=True):
            assert b"HTTP/1.1 5" not in answer, (asked, answer)
            assert b"Traceback" not in answer, (asked, answer)
            answered += answer.startswith(b"HTTP/1.1 ")

    assert answered > REQUESTS // 2, "the attack did not get anywhere"
