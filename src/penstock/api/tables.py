"""The tables that the pipeline computes, as small JSON documents."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from penstock.api.operation import AnswerRecord, Limit, QueryRecord, about, everywhere
from penstock.domain.errors import FilesChanged, FileUnreadable, LakeUnreachable
from penstock.domain.lake.tables import TableReadiness, TableSummary

DAY = {"format": "date"}


class Insights(AnswerRecord, frozen=True):
    readiness: Annotated[
        TableReadiness, about("no_reader: pyarrow is not installed; no_tables: none exist yet.")
    ]
    folder: Annotated[str, about("The folder from which the tables are read.")]
    tables: Annotated[list[TableSummary], about("The tables, by name.")]


class InsightRows(AnswerRecord, frozen=True):
    columns: Annotated[list[str], about("The names of the columns.")]
    rows: Annotated[
        list[list[Any]], about("The rows, each a list of values in the order of the columns.")
    ]
    is_cut: Annotated[bool, about("True if there are more rows.")]


class Days(QueryRecord):
    from_day: Annotated[
        str | None, Meta(description="Only this day and later.", extra_json_schema=DAY)
    ] = None
    to_day: Annotated[
        str | None, Meta(description="Only this day and earlier.", extra_json_schema=DAY)
    ] = None
    limit: Limit = 100


LIST = everywhere.get(
    "listInsights",
    "/v1/insights",
    "List the tables that the pipeline has computed from history.",
    Insights,
    errors=(LakeUnreachable,),
)
GET = everywhere.get(
    "getInsight",
    "/v1/insights/{table}",
    "Retrieve rows of a table, the newest days first.",
    InsightRows,
    query=Days,
    errors=(LakeUnreachable, FileUnreadable, FilesChanged),
)
