"""SQL on the lake and the tables that the pipeline computes; statements only read."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from penstock.api.operation import AnswerRecord, RequestRecord, about, everywhere
from penstock.domain import errors
from penstock.domain.access.api_key import Role
from penstock.domain.lake.sql import MAX_CHARS, SqlColumn


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


RUN = everywhere.post(
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
