"""`penstock pipeline java`"""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from shutil import which

from penstock.domain.errors import InvalidRequest
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command


def _configure(parser: Parser) -> None:
    pass


def _run(args: Namespace, out: Output) -> int:
    from penstock.pipeline.java import java_home

    home = java_home(os.environ) or _on_path()
    return out.result({"java_home": home}, home)


def _on_path() -> str:
    java = which("java")
    if java is None:
        raise InvalidRequest("java was not found on the PATH")
    return str(Path(java).resolve().parent.parent)


COMMANDS = {
    "pipeline java": Command(
        _run,
        _configure,
        more="For Spark tools that are started without Penstock: spark-submit, pyspark, a Spark "
        "Connect server. `penstock pipeline run` finds it by itself.",
        examples=(
            "penstock pipeline java",
            'JAVA_HOME="$(penstock pipeline java)" spark-submit …',
        ),
    )
}
