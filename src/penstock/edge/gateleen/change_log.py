"""Logs changes of resources, with the payload if the logging resource asks for it."""

from __future__ import annotations

import logging

from penstock.domain.errors import PenstockError
from penstock.edge.gateleen import logging_document
from penstock.edge.gateleen.logging_document import PayloadLogging
from penstock.edge.server.request import Request
from penstock.services.documents import DocumentService

NAME = "logging"  # the name of the document
_NOTHING = PayloadLogging()
_log = logging.getLogger("penstock.changes")


class ChangeLog:
    def __init__(self, documents: DocumentService, *, with_payloads: bool) -> None:
        self._documents = documents
        self._with_payloads = with_payloads

    async def changed(self, request: Request) -> None:
        """Log a change; called after it was made, so it must not raise."""
        _log.info("%s %s by %s", request.method, request.path, request.caller.name)
        if not self._with_payloads or not request.body:
            return
        wanted = await self._wanted()
        headers = _texts(request.headers)
        if _is_wanted(wanted, request, headers):
            shown = {name: headers[name] for name in wanted.headers if name in headers}
            payload = request.body.decode("utf-8", "replace")
            _log.info("%s %s %s payload: %s", request.method, request.path, shown, payload)

    async def _wanted(self) -> PayloadLogging:
        try:
            found = await self._documents.get(NAME)
            return _NOTHING if found is None else logging_document.read(found.text.encode())
        except PenstockError as error:
            _log.warning("the logging resource cannot be read: %s", error)
            return _NOTHING


def _is_wanted(wanted: PayloadLogging, request: Request, headers: dict[str, str]) -> bool:
    try:
        return wanted.wants(url=request.path, method=request.method, headers=headers)
    except PenstockError as error:  # matching the pattern took too long
        _log.warning("no filter of the logging resource applies: %s", error)
        return False


def _texts(headers: dict[bytes, bytes]) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in headers.items()}
