"""`penstock pipeline java`"""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from shutil import which

from penstock.domain.errors import InvalidRequest
from penstock.edge.cli.kit.command import Command
from penstock.edge.cli.kit.output import Output


def _run(args: Namespace, out: Output) -> None:
    from penstock.pipeline.java import java_home

    home = java_home(os.environ) or _on_path()
    out.result({"java_home": home}, home)


def _on_path() -> str:
    java = which("java")
    if java is None:
        raise InvalidRequest("java was not found on the PATH")
    return str(Path(java).resolve().parent.parent)


COMMANDS = {
    "pipeline java": Command(
        _run,
        more="For Spark tools that are started without Penstock: spark-submit, pyspark, a Spark "
        "Connect server. `penstock pipeline run` finds it by itself.",
        examples=(
            "penstock pipeline java",
            'JAVA_HOME="$(penstock pipeline java)" spark-submit …',
        ),
    )
}
