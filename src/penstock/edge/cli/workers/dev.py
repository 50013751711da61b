"""`penstock dev`: a server, workers that reload, and the console, in one command."""

from __future__ import annotations

import dataclasses
import sys
import threading
from argparse import Namespace
from urllib.parse import urlsplit

from penstock.domain.errors import InvalidRequest
from penstock.edge.cli.kit.command import StoreCommand, argument
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.flags import setting_flag
from penstock.edge.cli.kit.output import Output
from penstock.settings import Settings

_SERVERS = ("http://", "https://")
_LOCAL = ("localhost", "127.0.0.1", "::1")
_LOOK_S = 0.25


def _run(settings: Settings, args: Namespace, out: Output) -> int:
    from penstock.edge.serving.ready import print_ready
    from penstock.edge.serving.serve import serve
    from penstock.supervision.logs import set_up_logs
    from penstock.wiring.broker import migrate

    if settings.store.url is None:
        settings = served_at(settings, _url_of(args.app))
    count = 1 if settings.workers.embedded is None else settings.workers.embedded
    workers = dataclasses.replace(settings.workers, modules=args.app, embedded=count, reload=True)
    settings = dataclasses.replace(settings, workers=workers)
    set_up_logs(settings.log.level, settings.log.format)
    migrate(settings)
    on_ready = (lambda line: out.record({"ready": line})) if out.json else print_ready
    return serve(settings, on_ready=on_ready)


def _url_of(place: str) -> str:
    """Wait until the application can be imported."""
    from penstock.worker.processes.describe import url_of
    from penstock.worker.processes.file_watch import FileWatch

    watch = FileWatch(["."])
    while True:
        try:
            return url_of(place)
        except InvalidRequest as error:
            print(f"penstock: {error}\nwaiting for a change of the files", file=sys.stderr)
        while not watch.settled():
            threading.Event().wait(_LOOK_S)


def served_at(settings: Settings, url: str) -> Settings:
    """Serve the store of an application with this URL, or where it expects its server."""
    if not url.startswith(_SERVERS):
        return dataclasses.replace(settings, store=dataclasses.replace(settings.store, url=url))
    place = urlsplit(url)
    if place.scheme != "http" or place.hostname not in _LOCAL:
        raise UsageError(
            f"the application uses the server {url}; penstock dev starts one on this machine: name "
            "a store with --store, and use http://127.0.0.1:7654 in the application"
        )
    server = dataclasses.replace(
        settings.server, host=place.hostname, port=80 if place.port is None else place.port
    )
    return dataclasses.replace(settings, server=server)


COMMANDS = {
    "dev": StoreCommand(
        _run,
        argument("APP", "module:name of the application, e.g. shop.jobs:app"),
        setting_flag(
            "--processes",
            "workers.embedded",
            value="M",
            text="number of worker processes; default 1",
        ),
        setting_flag(
            "--port",
            "server.port",
            value="PORT",
            text="port to listen on, 0 for any free port; default 7654, or that of the "
            "application's own URL",
        ),
        more="For development. Serves the store that the application names, or the one given with "
        "--store, migrates it if necessary, runs the application's jobs, and restarts the workers "
        "when a Python file below the working directory changes. If the application cannot be "
        "imported, prints its error and waits for a change. SIGTERM or Ctrl-C stops all of it.",
        examples=("penstock dev jobs:app", "penstock dev shop.jobs:app --port 8000 --processes 2"),
    )
}
