"""Which requests at `/` are for SNS; the others there are for SQS."""

from __future__ import annotations

import re

from penstock.edge.aws.query_protocol import is_form
from penstock.edge.aws.sigv4 import is_in_header
from penstock.edge.server.request import Request

VERSION = "2010-03-31"
_START = b"AWS4-HMAC-SHA256"
_SCOPE = b"/sns/aws4_request"
# In a form or a query string; the values of other fields have neither & nor =.
_VERSION = re.compile(rb"(?:^|&)Version=2010-03-31(?:&|$)")
# URLs that people open, without a version.
_OPENED = re.compile(rb"(?:^|&)Action=(?:ConfirmSubscription|Unsubscribe)(?:&|$)")
_SIGNED_FOR = re.compile(rb"(?:^|&)X-Amz-Credential=[^&]*%2Fsns%2F")


def is_opened(request: Request) -> bool:
    """Whether it may be a URL of an envelope, which is opened without a signature."""
    return (
        request.method == "GET"
        and not is_in_header(request)
        and _SIGNED_FOR.search(request.query_bytes) is None
        and _OPENED.search(request.query_bytes) is not None
    )


def is_for_sns(request: Request) -> bool:
    """By the scope of the signature, or by the version of the API or the name of the operation."""
    authorization = request.headers.get(b"authorization", b"")
    if authorization.startswith(_START):
        return _SCOPE in authorization
    query = request.query_bytes
    if query and (_VERSION.search(query) or _OPENED.search(query) or _SIGNED_FOR.search(query)):
        return True
    return is_form(request) and _VERSION.search(request.body) is not None
