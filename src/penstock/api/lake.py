"""What the pipeline computes: tables, answers to questions about the past, and SQL on the lake."""

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
from penstock.domain.insights.answer import Answer
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


class Answers(AnswerRecord, frozen=True):
    answers: Annotated[list[Answer], about("The answers, in the order of the questions.")]


class AnsweredDays(QueryRecord):
    from_day: Annotated[
        str | None,
        Meta(description="Only this day and later; default: four weeks.", extra_json_schema=DAY),
    ] = None
    to_day: Annotated[
        str | None,
        Meta(description="Only this day and earlier; default: the newest.", extra_json_schema=DAY),
    ] = None


class AdviceToApply(RequestRecord):
    """Advice as an answer contains it; it is applied only if it has not changed since."""

    target: Annotated[
        str, about("What to change: a route, `*` for all routes, or the name of a fleet.")
    ]
    settings: Annotated[dict[str, int], about("The recommended settings.")]
    before: Annotated[dict[str, int], about("The settings in force, as in the advice.")]


class AppliedAdvice(AnswerRecord, frozen=True):
    target: Annotated[str, about("What was changed.")]
    settings: Annotated[dict[str, int], about("The settings that are in force now.")]


LIST_ANSWERS = everywhere.get(
    "listAnswers",
    "/v1/answers",
    "Answer all questions about the past, from the tables of the pipeline.",
    Answers,
    query=AnsweredDays,
    errors=(errors.FilesChanged, errors.FileUnreadable, errors.LakeUnreachable),
)
GET_ANSWER = everywhere.get(
    "getAnswer",
    "/v1/answers/{question}",
    "Answer one question.",
    Answer,
    query=AnsweredDays,
    errors=(errors.FilesChanged, errors.FileUnreadable, errors.LakeUnreachable),
)
APPLY_ADVICE = everywhere.post(
    "applyAdvice",
    "/v1/answers/{question}/apply",
    "Apply advice on a breaker or a fleet, unless it or the settings in force have changed.",
    AppliedAdvice,
    request=AdviceToApply,
    example={
        "target": "*",
        "settings": {
            "entries_max_age_ms": 300_000,
            "max_queue_sample_count": 4_000,
            "error_threshold_percentage": 70,
            "min_queue_sample_count": 100,
        },
        "before": {
            "entries_max_age_ms": 86_400_000,
            "max_queue_sample_count": 5_000,
            "error_threshold_percentage": 90,
            "min_queue_sample_count": 100,
        },
    },
    query=AnsweredDays,
    errors=(
        errors.AdviceOutdated,
        errors.FilesChanged,
        errors.FileUnreadable,
        errors.LakeUnreachable,
    ),
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
