"""`/console`: the pages and the login.

All pages are the same file; its script selects the page by the path.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from penstock.domain.access.api_key import ANYONE, Caller, Role
from penstock.domain.errors import InvalidRequest, NotFound, Unauthenticated
from penstock.edge.console.files import Files, StaticFile
from penstock.edge.instants import to_text
from penstock.edge.server.app import cookie
from penstock.edge.server.compression import GZIP, VARY, accepts_gzip, weak
from penstock.edge.server.request import Request, Respond, Response, decode, json_response
from penstock.edge.server.router import HttpRoute
from penstock.services.access import Keyring, LoginService, OpenLogin
from penstock.version import __version__

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_SECURITY_HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
_REVALIDATE = (b"cache-control", b"no-cache")
_NO_STORE = (b"cache-control", b"no-store")
_IMMUTABLE = (b"cache-control", b"public, max-age=31536000, immutable")


class LoginIn(msgspec.Struct, forbid_unknown_fields=True):
    key: str


class CallerOut(msgspec.Struct):
    name: str
    roles: list[Role]
    queues: list[str]


class SessionOut(msgspec.Struct):
    version: str
    is_key_needed: bool
    has_aweq: bool
    is_aweq_used: bool
    caller: CallerOut | None
    csrf_token: str | None = None
    until: str | None = None


_login = msgspec.json.Decoder(LoginIn)


class ConsoleApi:
    def __init__(
        self,
        keyring: Keyring,
        logins: LoginService,
        *,
        is_tls: bool,
        has_aweq: bool,
        is_aweq_used: Callable[[], Awaitable[bool]],
    ) -> None:
        self._keyring = keyring
        self._logins = logins
        self._is_tls = is_tls
        self._has_aweq = has_aweq
        self._is_aweq_used = is_aweq_used
        self._files = Files()

    def routes(self) -> list[HttpRoute]:
        return [
            HttpRoute(method=method, path=path, handler=handler)
            for method, path, handler in (
                ("GET", "/console", self.page),
                ("GET", "/console/{page...}", self.page),
                ("GET", "/console/static/{file...}", self.file),
                ("GET", "/console/session", self.session),
                ("POST", "/console/session", self.log_in),
                ("DELETE", "/console/session", self.log_out),
            )
        ]

    async def page(self, request: Request, respond: Respond) -> Response:
        return _file_response(request, self._files.shell, _REVALIDATE)

    async def file(self, request: Request, respond: Respond) -> Response:
        found = self._files.find(request.params["file"])
        if found is None:
            raise NotFound("file not found; the console may have been updated: reload the page")
        return _file_response(request, found, _IMMUTABLE)

    async def session(self, request: Request, respond: Respond) -> Response:
        if not self._keyring.is_needed:
            return await self._session(ANYONE)
        token = cookie(request.headers, self._logins.cookie)
        if token is not None and not self._logins.is_fresh(token):
            await self._logins.load(token)
        found = None if token is None else self._logins.find(token)
        return await (self._session(None) if found is None else self._session(found.caller, found))

    async def log_in(self, request: Request, respond: Respond) -> Response:
        key = decode(_login, request.body).key.strip()
        if not self._keyring.is_needed:
            raise InvalidRequest("this server does not require an API key")
        if not key.isascii():
            raise Unauthenticated("this API key is unknown, revoked or expired")
        opened = await self._logins.open(key)
        response = await self._session(opened.caller, opened)
        response.headers += (self._cookie(request, opened.token),)
        return response

    async def log_out(self, request: Request, respond: Respond) -> Response:
        token = cookie(request.headers, self._logins.cookie)
        if token is not None:
            await self._logins.close(token)
        response = await self._session(None)
        response.headers += (self._cookie(request, None),)
        return response

    async def _session(self, caller: Caller | None, found: OpenLogin | None = None) -> Response:
        shown = None
        if caller is not None:
            shown = CallerOut(caller.name, sorted(caller.roles), list(caller.queues))
        out = SessionOut(
            __version__,
            self._keyring.is_needed,
            self._has_aweq,
            caller is not None and await self._is_aweq_used(),
            shown,
        )
        if found is not None:
            out.csrf_token, out.until = found.page_token, to_text(found.until_at)
        response = json_response(out)
        response.headers = (*_SECURITY_HEADERS, _NO_STORE)
        return response

    def _cookie(self, request: Request, token: str | None) -> tuple[bytes, bytes]:
        """Build the login cookie: hidden from scripts, and never sent from pages of other sites."""
        value = f"{self._logins.cookie}={token or ''}; Path=/; HttpOnly; SameSite=Strict"
        # Behind a TLS proxy, the origin of the page shows that the browser uses TLS.
        if self._is_tls or request.headers.get(b"origin", b"").startswith(b"https:"):
            value += "; Secure"
        if token is None:
            value += "; Max-Age=0"
        return b"set-cookie", value.encode()


def _file_response(request: Request, file: StaticFile, caching: tuple[bytes, bytes]) -> Response:
    is_packed = file.gzipped is not None and accepts_gzip(request.headers)
    headers: tuple[tuple[bytes, bytes], ...]
    headers = (*_SECURITY_HEADERS, caching, (b"etag", weak(file.etag) if is_packed else file.etag))
    known = request.headers.get(b"if-none-match", b"")
    if file.etag in [tag.strip().removeprefix(b"W/") for tag in known.split(b",")]:
        return Response(304, headers=headers)
    if file.gzipped is None or not is_packed:
        return Response(200, file.body, content_type=file.media, headers=headers)
    headers = (*headers, GZIP, VARY)
    return Response(200, file.gzipped, content_type=file.media, headers=headers)
