"""Requests as clients of SQS send them."""

from __future__ import annotations

from urllib.parse import urlencode

from penstock.edge.server.request import Request, split_target

HOST = {b"host": b"localhost:7654"}


def a_json_request(operation: str, body: bytes = b"{}", *, path: str = "/") -> Request:
    headers = {
        **HOST,
        b"content-type": b"application/x-amz-json-1.0",
        b"x-amz-target": f"AmazonSQS.{operation}".encode(),
    }
    return Request("POST", path, b"", headers, body)


def a_form_request(path: str = "/", accept: str = "*/*", **fields: str) -> Request:
    return a_form(list(fields.items()), path=path, accept=accept)


def a_form(pairs: list[tuple[str, str]], *, path: str = "/", accept: str = "*/*") -> Request:
    headers = {
        **HOST,
        b"content-type": b"application/x-www-form-urlencoded; charset=utf-8",
        b"accept": accept.encode(),
    }
    return Request("POST", path, b"", headers, urlencode(pairs).encode())


def a_get(url: str, headers: dict[bytes, bytes] | None = None) -> Request:
    path, query = split_target(url.encode())
    return Request("GET", path, query, {**HOST, **(headers or {})}, b"")
