"""The lake and the tables that the pipeline computes: SQL on both, and tables as JSON documents."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from penstock.api.operation import (
    AnswerRecord,
    Limit,
    QueryRecord,
    RequestRecord,
    about,
    everywhere,
)
from penstock.domain import errors
from penstock.domain.access.api_key import Role
from penstock.domain.lake.sql import MAX_CHARS, SqlColumn
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


LIST_TABLES = everywhere.get(
    "listInsights",
    "/v1/insights",
    "List the tables that the pipeline has computed from history.",
    Insights,
    errors=(errors.LakeUnreachable,),
)
GET_TABLE = everywhere.get(
    "getInsight",
    "/v1/insights/{table}",
    "Retrieve rows of a table, the newest days first.",
    InsightRows,
    query=Days,
    errors=(errors.LakeUnreachable, errors.FileUnreadable, errors.FilesChanged),
)


class SqlStatement(RequestRecord):
    sql: Annotated[
        str,
        Meta(
            description="One SELECT statement in the dialect of DuckDB. `SHOW TABLES` lists the "
            "tables, and `DESCRIBE rollups` the columns of one.",
            extra_json_schema={"minLength": 1, "maxLength": MAX_CHARS},
        ),
    ]
    limit: Annotated[
        int | None,
        Meta(
            description="The maximum number of rows, at most `sql.max_rows`, which is also the "
            "default.",
            extra_json_schema={"minimum": 1},
        ),
    ] = None


class SqlRows(AnswerRecord, frozen=True):
    columns: Annotated[list[SqlColumn], about("The columns, in order.")]
    rows: Annotated[
        list[list[Any]], about("The rows, each a list of values in the order of the columns.")
    ]
    is_cut: Annotated[
        bool, about("True if there are more rows, or if they exceed `limits.max_answer_bytes`.")
    ]


RUN_SQL = everywhere.post(
    "runSql",
    "/v1/sql",
    "Query the lake and the computed tables with SQL. Statements can only read.",
    SqlRows,
    request=SqlStatement,
    role=Role.READ,
    is_idempotent=True,
    example={"sql": "SELECT queue, count(*) AS n FROM history GROUP BY queue"},
    errors=(errors.SqlFailed, errors.SqlTimeout, errors.TooManyWaiting),
)
