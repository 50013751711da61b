"""beanstalkd's text protocol; tens are ten pipelined commands, since it has no batches."""

from __future__ import annotations

from functools import cache

from bench.clients.base import Done, Endpoint, Got, OnError, Receipts
from bench.clients.line import LineConnection, open_line
from bench.payload import BODY

RUN_SECONDS = 120
WAIT_S = 20


class BeanstalkClient:
    fill_batch = 10

    def __init__(self, endpoint: Endpoint, queue: str) -> None:
        self._host, self._port = str(endpoint["host"]), int(endpoint["port"])
        self._tube = queue.encode()

    async def create_queue(self) -> None:
        """A tube comes into being with its first job."""

    async def drop_queue(self) -> None:
        """A tube cannot be dropped; what a load leaves behind stays until the server stops."""

    async def connect(
        self, on_error: OnError, batch: int, *, waits: bool = False
    ) -> BeanstalkConnection:
        line = await open_line(self._host, self._port, on_error)
        raw = b"use %b\r\nwatch %b\r\nignore default\r\n" % (self._tube, self._tube)
        answer = await line.ask(raw, lines=3)
        if answer != b"USING %b\r\nWATCHING 2\r\nWATCHING 1\r\n" % self._tube:
            raise RuntimeError(f"unexpected answer: {answer!r}")
        return BeanstalkConnection(line, wait_s=WAIT_S if waits else 0)


class BeanstalkConnection:
    def __init__(self, line: LineConnection, *, wait_s: int) -> None:
        self._line = line
        self._reserve = b"reserve-with-timeout %d\r\n" % wait_s

    def send(self, count: int, then: Done) -> None:
        self._expect(put(count), count, b"INSERTED ", then)

    def receive(self, count: int, then: Got) -> None:
        def take(data: bytes) -> bool:
            lines = data.split(b"\r\n")
            jobs = [line for line in lines if line.startswith(b"RESERVED ")]
            nothing = lines.count(b"TIMED_OUT")
            if len(lines) < 2 * len(jobs) + nothing + 1 or len(jobs) + nothing < count:
                return False
            then([job.split(b" ")[1] for job in jobs])
            return True

        self._line.request(self._reserve * count, take)

    def ack(self, receipts: Receipts, then: Done) -> None:
        raw = b"".join([b"delete %b\r\n" % receipt for receipt in receipts])
        self._expect(raw, len(receipts), b"DELETED", then)

    def close(self) -> None:
        self._line.close()

    def _expect(self, raw: bytes, count: int, answer: bytes, then: Done) -> None:
        def take(data: bytes) -> bool:
            if data.count(b"\r\n") < count:
                return False
            if data.count(answer) == count:
                then()
            else:
                self._line.on_error(f"unexpected answer: {data[:300]!r}")
            return True

        self._line.request(raw, take)


@cache
def put(count: int) -> bytes:
    return b"put 1 0 %d %d\r\n%b\r\n" % (RUN_SECONDS, len(BODY), BODY) * count
