"""The static files of the console, read and joined once.

Their path contains a hash of all files, so that browsers can cache them forever and never mix two
versions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from importlib import resources
from importlib.resources.abc import Traversable

import msgspec

from penstock.edge.console.bundle import bundle
from penstock.edge.server.compression import MIN_BYTES, gzipped

_MEDIA = {
    "css": b"text/css; charset=utf-8",
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}
_SHELL = "index.html"
_ENTRY = "app.js"
_SCRIPT = "console.js"
_STYLE = "style.css"
_SHEETS = ("base", "layout", "parts", "charts", "pages", "flows")  # in the order of the cascade


class StaticFile(msgspec.Struct, frozen=True):
    body: bytes
    media: bytes
    etag: bytes
    gzipped: bytes | None = None


class Files:
    def __init__(self) -> None:
        found = dict(_walk(resources.files("penstock.edge.console").joinpath("static"), ""))
        digests = b"".join(name.encode() + file.etag for name, file in sorted(found.items()))
        self.version = hashlib.sha256(digests).hexdigest()[:16]
        shell = found.pop(_SHELL)
        # The modules are served as well, for debugging.
        self._by_name = found | {_STYLE: _joined_sheets(found), _SCRIPT: _joined_modules(found)}
        self.shell = self._fill(shell)

    def find(self, place: str) -> StaticFile | None:
        """The file `VERSION/NAME`; None if it is unknown or of another version."""
        version, _, name = place.partition("/")
        return self._by_name.get(name) if version == self.version else None

    def _fill(self, shell: StaticFile) -> StaticFile:
        root = f"/console/static/{self.version}"
        return _file(_SHELL, shell.body.decode().replace("{{static}}", root).encode())


def _joined_modules(found: Mapping[str, StaticFile]) -> StaticFile:
    modules = {name: file.body.decode() for name, file in found.items() if name.endswith(".js")}
    return _file(_SCRIPT, bundle(modules, _ENTRY).encode())


def _joined_sheets(found: Mapping[str, StaticFile]) -> StaticFile:
    sheets = [found[f"{name}.css"].body for name in _SHEETS]
    assert len(sheets) == sum(name.endswith(".css") for name in found), (
        "a style sheet is not listed"
    )
    return _file(_STYLE, b"\n".join(sheets))


def _walk(folder: Traversable, start: str) -> Iterator[tuple[str, StaticFile]]:
    for found in folder.iterdir():
        name = f"{start}{found.name}"
        if found.is_dir():
            yield from _walk(found, f"{name}/")
        elif found.name.rpartition(".")[2] in _MEDIA:
            yield name, _file(name, found.read_bytes())


def _file(name: str, body: bytes) -> StaticFile:
    digest = hashlib.sha256(body).hexdigest()[:32]
    packed = gzipped(body, is_kept=True) if len(body) >= MIN_BYTES else None
    return StaticFile(body, _MEDIA[name.rpartition(".")[2]], f'"{digest}"'.encode(), packed)
