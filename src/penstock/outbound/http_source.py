"""Queries to a load source over HTTP.

Every query has one timeout for all its requests.  Secrets are read each time, so that a changed
file takes effect at once; they never appear in messages.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from penstock.domain.errors import SourceUnavailable

T = TypeVar("T")
Session = aiohttp.ClientSession

_MAX_BYTES = 32 * 1024 * 1024


class HttpSource:
    def __init__(self, name: str, product: str, endpoint: str, *, timeout_ms: int) -> None:
        """`name` and `product` appear in error messages.  Sends nothing yet."""
        self.name = name
        self.endpoint = endpoint.rstrip("/")
        self._product = product
        self._timeout_ms = timeout_ms

    def ask(self, query: Callable[[Session], Awaitable[T]], headers: Mapping[str, str]) -> T:
        """Run a query; raises SourceUnavailable, and what `query` raises."""

        async def do() -> T:
            limit = asyncio.timeout(self._timeout_ms / 1000)
            async with limit, aiohttp.ClientSession(headers=headers) as session:
                return await query(session)

        try:
            return asyncio.run(do())
        except TimeoutError:
            raise self.trouble(f"no answer within {self._timeout_ms} ms") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise self.trouble(str(error) or type(error).__name__) from error

    async def body(self, answer: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for part in answer.content.iter_any():
            body += part
            if len(body) > _MAX_BYTES:
                raise ValueError(f"the answer is longer than {_MAX_BYTES} bytes")
        return bytes(body)

    def decode(self, body: bytes, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(body, type=kind)
        except msgspec.MsgspecError as error:
            raise self.unexpected(error) from None

    def convert(self, value: object, kind: type[T]) -> T:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            raise self.unexpected(error) from None

    def secret(self, what: str, *, file: str | None, variable: str | None) -> str | None:
        """The secret; None: neither `file` nor `variable` is set."""
        return read_secret(what, file=file, variable=variable, trouble=self.trouble)

    def unexpected(self, error: Exception) -> SourceUnavailable:
        return self.trouble(f"its answer is not one of {self._product}: {error}")

    def trouble(self, why: str) -> SourceUnavailable:
        where = urlsplit(self.endpoint)
        at = f"{where.hostname}:{where.port}" if where.port else str(where.hostname)
        return SourceUnavailable(f"source {self.name}, {self._product} at {at}: {why}")


def read_secret(
    what: str,
    *,
    file: str | None,
    variable: str | None,
    trouble: Callable[[str], SourceUnavailable],
) -> str | None:
    if variable is not None:
        try:
            return os.environ[variable]
        except KeyError:
            raise trouble(f"the environment variable {variable} is not set") from None
    if file is None:
        return None
    try:
        return Path(file).read_text(encoding="utf-8").strip("\r\n")
    except (OSError, ValueError) as error:
        raise trouble(f"its {what} file cannot be read: {error}") from None
