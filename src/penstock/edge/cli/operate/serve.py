"""`penstock serve`"""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from penstock.edge.cli.kit.command import StoreCommand
from penstock.edge.cli.kit.flags import setting_flag
from penstock.edge.cli.kit.output import Output
from penstock.settings import Settings


def _run(settings: Settings, args: Namespace, out: Output) -> int:
    from penstock.edge.serve import serve
    from penstock.supervision.logs import set_up_logs

    for file in (settings.server.tls_cert, settings.server.tls_key):
        if file is not None:
            # The ssl module's error for a missing file does not name it.
            Path(file).open("rb").close()
    set_up_logs(settings.log.level, settings.log.format)
    if not out.json:
        return serve(settings)
    return serve(settings, on_ready=lambda line: out.record({"ready": line}))


COMMANDS = {
    "serve": StoreCommand(
        _run,
        setting_flag(
            "--host",
            "server.host",
            value="ADDRESS",
            text="address to listen on; default 127.0.0.1",
        ),
        setting_flag(
            "--port",
            "server.port",
            value="PORT",
            text="port to listen on, 0 for any free port; default 7654",
        ),
        more="Stores messages in the data folder (SQLite), or in PostgreSQL with --store. Prints "
        "one line when it is ready, and runs until SIGINT (Ctrl-C) or SIGTERM.",
        examples=(
            "penstock serve --data ./data",
            "penstock serve --port 8000 --set history.retention_days=30",
            "penstock serve --store postgresql://penstock@db/penstock",
        ),
    )
}
