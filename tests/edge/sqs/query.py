"""The Query protocol without an SDK: requests, and the XML that is returned."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

import httpx

ID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
XMLNS = 'xmlns="http://queue.amazonaws.com/doc/2012-11-05/"'
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Query:
    """Requests as hand-written clients send them."""

    def __init__(self, http: httpx.Client) -> None:
        self.http = http

    def ask(self, action: str, path: str = "/", /, **fields: Any) -> httpx.Response:
        """Send a request; dots in field names are written as two underscores."""
        named = {name.replace("__", "."): value for name, value in fields.items()}
        form = {"Action": action, "Version": "2012-11-05", **named}
        return self.http.post(path, content=urlencode(form), headers=FORM)

    def result(self, action: str, path: str = "/", /, **fields: Any) -> str:
        """The contents of the result; the envelope around it must be the usual one."""
        return framed(action, self.ask(action, path, **fields))

    def nothing(self, action: str, path: str = "/", /, **fields: Any) -> None:
        """For operations without a result: not even an empty element."""
        answer = self.ask(action, path, **fields)
        metadata = f"<ResponseMetadata><RequestId>{ID}</RequestId></ResponseMetadata>"
        pattern = f"{START}<{action}Response {XMLNS}>{metadata}</{action}Response>"
        assert re.fullmatch(pattern, answer.text), answer.text


START = re.escape('<?xml version="1.0"?>')


def framed(action: str, answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/xml"
    metadata = f"<ResponseMetadata><RequestId>({ID})</RequestId></ResponseMetadata>"
    found = re.fullmatch(
        f"{START}<{action}Response {XMLNS}>"
        f"(?:<{action}Result/>|<{action}Result>(.*)</{action}Result>)"
        f"{metadata}</{action}Response>",
        answer.text,
        re.DOTALL,
    )
    assert found is not None, answer.text
    assert answer.headers["x-amzn-requestid"] == found[2]
    return found[1] or ""


def refusal(answer: httpx.Response) -> tuple[int, str, str]:
    """The status, code and text of an error."""
    found = re.fullmatch(
        f"{START}<ErrorResponse {XMLNS}><Error><Type>(Sender|Receiver)</Type><Code>(.*)</Code>"
        f"<Message>(.*)</Message><Detail/></Error><RequestId>{ID}</RequestId></ErrorResponse>",
        answer.text,
        re.DOTALL,
    )
    assert found is not None, answer.text
    assert answer.headers["content-type"] == "text/xml"
    assert found[1] == ("Sender" if answer.status_code < 500 else "Receiver")
    return answer.status_code, found[2], found[3]


def value(xml: str, element: str) -> str:
    found = re.search(f"<{element}>(.*?)</{element}>", xml)
    assert found is not None, xml
    return found[1]
