"""HTTP to one server: persistent connections, timeouts, and retries only where they are safe.

A request that changes something is not repeated automatically: if its answer is lost, the client
cannot know whether it was executed.  `Unreachable.was_sent` says so, and the caller decides.
"""

from __future__ import annotations

import asyncio
import http.client
import select
import socket
import ssl
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from penstock.api.history import WaitForEnd
from penstock.api.operation import Operation, QueryRecord, RequestRecord
from penstock.client.channel import Ask, Body, Channel
from penstock.client.errors import Unreachable, no_transaction, refusal
from penstock.domain.errors import InvalidRequest, PenstockError
from penstock.settings.store_url import quoted_url

_BROKEN = (http.client.HTTPException, OSError)
_MAX_IDLE = 32
_WAIT_THREADS = 64
_ROUND_MS = 10_000  # within this time, each of many waits for results has its turn


A = TypeVar("A")


class _ErrorBody(msgspec.Struct):
    code: str
    message: str


class _ErrorAnswer(msgspec.Struct):
    error: _ErrorBody


_errors = msgspec.json.Decoder(_ErrorAnswer)


class HttpAnswer(msgspec.Struct, frozen=True):
    status: int
    body: bytes


class Transport(Channel):
    """Safe to share between threads: each request has exclusive use of a connection."""

    def __init__(
        self, url: str, *, key: str | None = None, timeout: float = 30.0, repeats: int = 1
    ) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidRequest(
                f"the URL of a server looks like http://127.0.0.1:7654, not {quoted_url(url)}"
            )
        self.url = url
        self._host, self._port = parts.hostname, parts.port
        self._path = parts.path.rstrip("/")
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._timeout = timeout
        self._repeats = repeats
        self._headers = {"Accept": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._idle: deque[http.client.HTTPConnection] = deque()
        self._waits = ThreadPoolExecutor(_WAIT_THREADS, "penstock-waiting")
        self._waiting = 0

    def ask(self, ask: Ask, tx: object = None) -> Any:
        if tx is not None:
            raise no_transaction()
        wait_s = ask.query.wait_ms / 1000 if isinstance(ask.query, WaitForEnd) else 0.0
        return self.exchange(
            ask.operation, ask.path, ask.body, ask.query, only_new=ask.only_new, wait_s=wait_s
        )

    async def ask_async(self, ask: Ask, tx: object = None) -> Any:
        if tx is None and isinstance(ask.query, WaitForEnd) and ask.query.wait_ms:
            return await self._wait_async(ask, ask.query.wait_ms)
        return await super().ask_async(ask, tx)

    async def _wait_async(self, ask: Ask, wait_ms: int) -> Any:
        """On threads of their own: waits would occupy those that other requests need.

        With more waits than threads, each request is shorter, so that all of them have their turn.
        """
        self._waiting += 1
        try:
            share_ms = _ROUND_MS * _WAIT_THREADS // self._waiting
            query = WaitForEnd(wait_ms=min(wait_ms, max(share_ms, 1)))
            one = msgspec.structs.replace(ask, query=query)
            return await asyncio.get_running_loop().run_in_executor(self._waits, self.ask, one)
        finally:
            self._waiting -= 1

    def exchange(
        self,
        operation: Operation[A],
        path: Mapping[str, str],
        body: Body | None = None,
        query: QueryRecord | None = None,
        *,
        only_new: bool = False,
        wait_s: float = 0.0,
        is_safe: bool = False,
    ) -> A:
        """`wait_s`: how long the server may wait before it answers.  `is_safe`: see `call`."""
        target = operation.path.format_map({name: quote(v, safe="") for name, v in path.items()})
        if query is not None and (chosen := msgspec.to_builtins(query)):
            target += "?" + urlencode({name: _parameter(value) for name, value in chosen.items()})
        answer = self.call(
            operation.method,
            target,
            body=body,
            headers={"If-None-Match": "*"} if only_new else None,
            wait_s=wait_s,
            is_safe=is_safe or _is_idempotent(operation, body, only_new),
        )
        found: A = _decoder(operation).decode(answer.body or b"null")
        return found

    def call(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        headers: dict[str, str] | None = None,
        wait_s: float = 0.0,
        is_safe: bool = False,
    ) -> HttpAnswer:
        """Return an answer with a status below 400; raises the server's error, or Unreachable.

        `is_safe`: executing the request twice has the same effect as once, so it is repeated if the
        answer is lost.
        """
        content = None if body is None else msgspec.json.encode(body)
        sent_headers = self._headers | (headers or {})
        if content is not None:
            sent_headers["Content-Type"] = "application/json"
        tries = 1 + (self._repeats if is_safe or method == "GET" else 0)
        while True:
            tries -= 1
            try:
                answer = self._once(method, path, content, sent_headers, self._timeout + wait_s)
                break
            except Unreachable:
                if tries <= 0:
                    raise
        if answer.status >= 400:
            raise self._refusal(answer)
        return answer

    def close(self) -> None:
        waits, self._waits = self._waits, ThreadPoolExecutor(_WAIT_THREADS, "penstock-waiting")
        waits.shutdown(wait=False, cancel_futures=True)
        while self._idle:
            self._idle.pop().close()

    def _once(
        self, method: str, path: str, content: bytes | None, headers: dict[str, str], timeout: float
    ) -> HttpAnswer:
        connection, was_sent = self._connection(timeout), False
        try:
            if connection.sock is None:
                connection.connect()
            connection.sock.settimeout(timeout)
            was_sent = True
            connection.request(method, self._path + path, content, headers)
            response = connection.getresponse()
            answer = HttpAnswer(response.status, response.read())
        except _BROKEN as error:
            connection.close()
            why = str(error) or type(error).__name__
            if isinstance(error, socket.gaierror):
                why += "; check the host name: the URL of a server looks like http://127.0.0.1:7654"
            raise Unreachable(f"no answer from {self.url}: {why}", was_sent=was_sent) from error
        except BaseException:
            connection.close()  # part of an answer may still arrive
            raise
        if response.will_close or len(self._idle) >= _MAX_IDLE:
            connection.close()
        else:
            self._idle.append(connection)
        return answer

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        while self._idle:
            try:
                kept = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            if not _is_dropped(kept):
                return kept
            kept.close()
        if self._tls is not None:
            return http.client.HTTPSConnection(
                self._host, self._port, timeout=timeout, context=self._tls
            )
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def _refusal(self, answer: HttpAnswer) -> PenstockError:
        try:
            error = _errors.decode(answer.body).error
        except msgspec.DecodeError:
            return PenstockError(
                f"{self.url} answered {answer.status}, but not with an error of Penstock"
            )
        return refusal(error.code, error.message)


def _parameter(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _is_idempotent(operation: Operation[Any], body: Body | None, only_new: bool) -> bool:
    if isinstance(body, RequestRecord) and body.is_idempotent:
        return True
    return operation.is_idempotent and not only_new


@cache
def _decoder(operation: Operation[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(operation.answer)


def _is_dropped(connection: http.client.HTTPConnection) -> bool:
    """Whether the server closed an idle connection: then its end can be read."""
    if connection.sock is None:
        return True
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))
