"""Answers to questions about the past, and applying their advice."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from penstock.api.lake import DAY
from penstock.api.operation import AnswerRecord, QueryRecord, RequestRecord, about, everywhere
from penstock.domain.errors import AdviceOutdated, FilesChanged, FileUnreadable, LakeUnreachable
from penstock.domain.insights.answer import Answer


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


LIST = everywhere.get(
    "listAnswers",
    "/v1/answers",
    "Answer all questions about the past, from the tables of the pipeline.",
    Answers,
    query=AnsweredDays,
    errors=(FilesChanged, FileUnreadable, LakeUnreachable),
)
GET = everywhere.get(
    "getAnswer",
    "/v1/answers/{question}",
    "Answer one question.",
    Answer,
    query=AnsweredDays,
    errors=(FilesChanged, FileUnreadable, LakeUnreachable),
)
APPLY = everywhere.post(
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
    errors=(AdviceOutdated, FilesChanged, FileUnreadable, LakeUnreachable),
)
