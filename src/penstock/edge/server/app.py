"""The HTTP application: identify the caller, check its access, and call the route's handler."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable

from penstock.domain.access import api_key as access
from penstock.domain.access.api_key import Caller, Scope
from penstock.domain.errors import (
    Forbidden,
    MethodNotAllowed,
    NotFound,
    PenstockError,
    ShuttingDown,
    UnsupportedMediaType,
)
from penstock.edge.server.errors import error_response, unexpected
from penstock.edge.server.request import Handler, Request, Respond, Response
from penstock.edge.server.router import HttpRoute, Refuse, Router
from penstock.services.access import Keyring, LoginService

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_LOOPBACK = frozenset({b"", b"localhost", b"127.0.0.1", b"[::1]"})  # HTTP/1.0 has no host
_HOST = re.compile(rb"(\[[^\]]*\]|[^:]*)(?::[0-9]*)?")
_MAX_REMEMBERED = 100  # host headers with different ports


class App:
    def __init__(
        self,
        router: Router,
        keyring: Keyring,
        logins: LoginService,
        *,
        hosts: frozenset[bytes],
        forward: Handler | None = None,
    ) -> None:
        """`forward`: serves, and authorises, requests for which there is no route here."""
        self._router = router
        self._keyring = keyring
        self._logins = logins
        self._hosts = hosts | _LOOPBACK
        self._known_hosts: set[bytes] = set()  # header values that passed the checks before
        self._known_json: set[bytes] = set()  # likewise
        self._forward = forward
        self.is_closing = False

    def __call__(self, request: Request, respond: Respond) -> Awaitable[Response] | None:
        method = "GET" if request.method == "HEAD" else request.method
        try:
            route, request.params = self._router.find(method, request.path)
        except (NotFound, MethodNotAllowed):
            if self._forward is None:
                raise
            return self._forward(request, respond)
        if b"cookie" in request.headers:
            token = self._login_to_load(request, route)
            if token is not None:
                return self._call_later(token, request, route)
        return self._call(request, route, respond)

    async def _call_later(self, token: str, request: Request, route: HttpRoute) -> Response:
        """Load the login from the store first, because this node may not know its latest state."""
        try:
            await self._logins.load(token)
        except Exception as error:
            if route.refuse is None:
                raise
            return _refusal(route.refuse, request, error)
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()

        def respond(response: Response) -> None:
            if not answer.done():  # it is cancelled if the client disconnects
                answer.set_result(response)

        later = self._call(request, route, respond)
        return await (answer if later is None else later)

    def _call(
        self, request: Request, route: HttpRoute, respond: Respond
    ) -> Awaitable[Response] | None:
        if route.refuse is None:
            self._check_access(request, route)
            return route.handler(request, respond)
        try:
            self._check_access(request, route)
            later = route.handler(request, respond)
        except Exception as error:
            respond(_refusal(route.refuse, request, error))
            return None
        return None if later is None else _await_or_refuse(route.refuse, request, later)

    def order_of(self, request: Request) -> int:
        """See HttpRoute."""
        try:
            route, _ = self._router.find(request.method, request.path)
        except PenstockError:
            return 0
        return route.order

    def refuse(self, request: Request, error: PenstockError) -> Response:
        """Render an error that no handler sees, in the format of the path's protocol."""
        try:
            route, _ = self._router.find(request.method, request.path)
        except PenstockError:
            return error_response(error)
        if route.refuse is None:
            return error_response(error)
        return _refusal(route.refuse, request, error)

    def _check_access(self, request: Request, route: HttpRoute) -> None:
        if self.is_closing and (route.role is not None or route.refuse is not None):
            raise ShuttingDown("this node is shutting down; try again or use another node")
        headers = request.headers
        if not self._keyring.is_needed:
            self._check_host(headers.get(b"host", b""))
        if request.method not in _SAFE:
            if not route.takes_other_sites:
                refuse_other_sites(headers)
            if request.body and not route.takes_any_media:
                self._check_json(headers.get(b"content-type", b""))
        if route.role is not None and self._keyring.is_needed:
            request.caller = self._caller(headers)
            access.allow(request.caller, route.role, route.queue or request.params.get("queue"))
            if route.scope is Scope.ALL:
                access.allow_everywhere(request.caller)

    def _caller(self, headers: dict[bytes, bytes]) -> Caller:
        """The caller, by the API key or, for console pages, by the login cookie."""
        if b"cookie" in headers and b"authorization" not in headers:
            token = cookie(headers, self._logins.cookie)
            if token is not None:
                given = headers.get(b"x-csrf-token")
                return self._logins.caller(token, None if given is None else given.decode("latin1"))
        return self._keyring.caller(_secret(headers))

    def _login_to_load(self, request: Request, route: HttpRoute) -> str | None:
        """The token of the login that authorises this request, if it must be loaded first."""
        if route.role is None or not self._keyring.is_needed:
            return None
        if b"authorization" in request.headers:
            return None
        token = cookie(request.headers, self._logins.cookie)
        return None if token is None or self._logins.is_fresh(token) else token

    def _check_host(self, host: bytes) -> None:
        """Without keys, serve only local host names, which prevents DNS rebinding."""
        if host in self._known_hosts:
            return
        match = _HOST.fullmatch(host)
        if match is None or match[1].lower() not in self._hosts:
            raise Forbidden(
                "this host name is not served without API keys; create one with penstock keys "
                "create"
            )
        _remember(self._known_hosts, host)

    def _check_json(self, content_type: bytes) -> None:
        if content_type in self._known_json:
            return
        if content_type.partition(b";")[0].strip().lower() != b"application/json":
            raise UnsupportedMediaType(
                "send JSON with the header content-type: application/json (curl: --json)"
            )
        _remember(self._known_json, content_type)


async def _await_or_refuse(
    refuse: Refuse, request: Request, later: Awaitable[Response]
) -> Response:
    try:
        return await later
    except Exception as error:
        return _refusal(refuse, request, error)


def _refusal(refuse: Refuse, request: Request, error: Exception) -> Response:
    """Render an error in the format of another protocol."""
    if isinstance(error, PenstockError):
        error_response(error)  # logs internal errors
        return refuse(request, error)
    unexpected(error)
    return refuse(request, PenstockError("internal error"))


def _remember(known: set[bytes], value: bytes) -> None:
    if len(known) < _MAX_REMEMBERED:
        known.add(value)


def refuse_other_sites(headers: dict[bytes, bytes]) -> None:
    """Reject requests that a browser sends for a page of another site."""
    origin = headers.get(b"origin")
    if origin is not None and origin.partition(b"://")[2] != headers.get(b"host", b""):
        raise Forbidden("requests from other sites are not accepted")
    if headers.get(b"sec-fetch-site") == b"cross-site":
        raise Forbidden("requests from other sites are not accepted")


def refuse_pages(headers: dict[bytes, bytes]) -> None:
    """Reject requests from pages of other origins, for GETs that have side effects.

    A page can send a GET without an Origin header, for an image for example, and another port of
    the same host counts as the same site.
    """
    refuse_other_sites(headers)
    if headers.get(b"sec-fetch-site") == b"same-site":
        raise Forbidden("requests from other sites are not accepted")


def cookie(headers: dict[bytes, bytes], name: str) -> str | None:
    """The value of a cookie, or None."""
    start = f"{name}=".encode()
    for part in headers.get(b"cookie", b"").split(b";"):
        if part.strip().startswith(start):
            return part.strip()[len(start) :].decode("latin1")
    return None


def _secret(headers: dict[bytes, bytes]) -> str | None:
    scheme, _, secret = headers.get(b"authorization", b"").partition(b" ")
    if scheme.lower() != b"bearer" or not secret.isascii():
        return None
    return secret.strip().decode()
