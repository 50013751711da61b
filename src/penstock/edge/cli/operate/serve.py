"""`penstock serve`"""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

from penstock.edge.cli.kit.command import StoreCommand
from penstock.edge.cli.kit.flags import setting_flag
from penstock.edge.cli.kit.output import Output
from penstock.settings import Settings


def _run(settings: Settings, args: Namespace, out: Output) -> int:
    from penstock.edge.serving.ready import fronts_of, print_ready
    from penstock.supervision.logs import set_up_logs

    for file in (settings.server.tls_cert, settings.server.tls_key):
        if file is not None:
            # The ssl module's error for a missing file does not name it.
            Path(file).open("rb").close()
    set_up_logs(settings.log.level, settings.log.format)
    on_ready = (lambda line: out.record({"ready": line})) if out.json else print_ready
    fronts = fronts_of(settings.server, cores=os.cpu_count() or 1)
    if fronts > 1:
        from penstock.edge.node.supervisor import supervise

        return supervise(settings, fronts=fronts, on_ready=on_ready)
    from penstock.edge.serving.serve import serve

    return serve(settings, on_ready=on_ready)


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
        setting_flag(
            "--processes",
            "server.processes",
            value="N",
            text="processes that serve HTTP; one more process writes; 0: one per core but one; "
            "default 1: one process does everything",
        ),
        setting_flag(
            "--definitions",
            "server.definitions",
            value="FILE",
            text="queues, topics and so on to create or change before the start, as for apply",
        ),
        more="Stores messages in the data folder (SQLite), or with --store in PostgreSQL or "
        "MariaDB. Prints one line when it is ready, and runs until SIGINT (Ctrl-C) or SIGTERM.",
        examples=(
            "penstock serve --data ./data",
            "penstock serve --port 8000 --set history.retention_days=30",
            "penstock serve --processes 4",
            "penstock serve --definitions definitions.yaml",
            "penstock serve --store postgresql://penstock@db/penstock",
        ),
    )
}
