"""The static files of the console, read once.

Their path contains a hash of all files, so that browsers can cache them forever and never mix two
versions.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable

import msgspec

_MEDIA = {
    "css": b"text/css; charset=utf-8",
    "html": b"text/html; charset=utf-8",
    "js": b"text/javascript; charset=utf-8",
    "svg": b"image/svg+xml",
}
_SHELL = "index.html"


class StaticFile(msgspec.Struct, frozen=True):
    body: bytes
    media: bytes
    etag: bytes


class Files:
    def __init__(self) -> None:
        found = dict(_walk(resources.files("penstock.edge.console").joinpath("static"), ""))
        digests = b"".join(name.encode() + file.etag for name, file in sorted(found.items()))
        self.version = hashlib.sha256(digests).hexdigest()[:16]
        shell = found.pop(_SHELL)
        self._by_name = found
        self.shell = self._fill(shell)

    def find(self, place: str) -> StaticFile | None:
        """The file `VERSION/NAME`; None if it is unknown or of another version."""
        version, _, name = place.partition("/")
        return self._by_name.get(name) if version == self.version else None

    def _fill(self, shell: StaticFile) -> StaticFile:
        root = f"/console/static/{self.version}"
        # Without preloads a browser discovers modules one import at a time.
        modules = sorted(name for name in self._by_name if name.endswith(".js"))
        early = "\n".join(f'  <link rel="modulepreload" href="{root}/{m}">' for m in modules)
        text = shell.body.decode().replace("{{early}}", early).replace("{{static}}", root)
        return _file(_SHELL, text.encode())


def _walk(folder: Traversable, start: str) -> Iterator[tuple[str, StaticFile]]:
    for found in folder.iterdir():
        name = f"{start}{found.name}"
        if found.is_dir():
            yield from _walk(found, f"{name}/")
        elif found.name.rpartition(".")[2] in _MEDIA:
            yield name, _file(name, found.read_bytes())


def _file(name: str, body: bytes) -> StaticFile:
    digest = hashlib.sha256(body).hexdigest()[:32]
    return StaticFile(body, _MEDIA[name.rpartition(".")[2]], f'"{digest}"'.encode())
