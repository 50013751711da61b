"""How a server reports that it is ready, in one process or in several."""

from __future__ import annotations

from penstock.settings import Settings
from penstock.settings.values import ServerSettings


def fronts_of(server: ServerSettings, *, cores: int) -> int:
    """How many processes serve HTTP; 0 in the settings: one per core but that of the writer."""
    return server.processes or max(cores - 1, 1)


def url_of(server: ServerSettings, port: int) -> str:
    scheme = "https" if server.tls_cert else "http"
    host = f"[{server.host}]" if ":" in server.host else server.host
    return f"{scheme}://{host}:{port}"


def ready_text(url: str, settings: Settings, *, store: str) -> str:
    pages = f"docs {url}/docs"
    if settings.console.enabled:
        pages = f"console {url}/console, {pages}"
    return f"penstock is ready: API {url}/v1, {pages}, store {store}"


def print_ready(line: str) -> None:
    # Flush, also into a pipe: service managers wait for this line.
    print(line, flush=True)  # noqa: T201
