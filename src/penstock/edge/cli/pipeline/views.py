"""`penstock pipeline views`: the tables for other tools."""

from __future__ import annotations

from argparse import Namespace

from penstock.edge.cli.kit.command import flag
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.operate.archive import (
    lake_flag,
    lake_folder,
    tables_flag,
    tables_folder,
)
from penstock.edge.cli.pipeline.failures import LocalCommand
from penstock.settings import Settings

SPARK, DBT = "spark", "dbt"


def _run(settings: Settings, args: Namespace, out: Output) -> None:
    from penstock.pipeline.session import check_installed

    check_installed()
    from penstock.pipeline.views import dbt_sources, spark_sql

    render = dbt_sources if args.format == DBT else spark_sql
    tables = tables_folder(settings, args)
    out.text(args.format, render(lake_folder(settings), tables_folder=tables))


COMMANDS = {
    "pipeline views": LocalCommand(
        _run,
        flag(
            "--format",
            "spark: statements that create temporary views; dbt: a file of sources",
            choices=(SPARK, DBT),
            default=SPARK,
        ),
        lake_flag,
        tables_flag,
        more="Prints views of the lake and of the computed tables, under the same names as in "
        "`penstock sql`. No Spark session is opened. A table of this machine that has no files yet "
        "has no view.",
        examples=(
            "penstock pipeline views --lake /lake > views.sql && spark-sql -i views.sql",
            "penstock pipeline views --lake /lake --format dbt > models/sources.yml",
        ),
    )
}
