"""The pipeline's tables, answers from them, and SQL on the lake.  The server needs no Spark."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from penstock.api import lake
from penstock.api.lake import (
    AdviceToApply,
    AnsweredDays,
    Answers,
    AppliedAdvice,
    Days,
    InsightRows,
    Insights,
    SqlRows,
    SqlStatement,
)
from penstock.domain.errors import QuestionNotFound
from penstock.domain.insights.answer import Answer
from penstock.domain.insights.questions import QUESTIONS, Question
from penstock.operations.call import Call, Handlers
from penstock.ports.unit_of_work import Steps, ThreadedStep
from penstock.services.answers import AnswerService, current_advice
from penstock.services.lake import Tables
from penstock.services.sql import SqlService

_FIRST_DAY, _LAST_DAY = "0000-01-01", "9999-12-31"


class TableOperations:
    def __init__(self, service: Tables) -> None:
        self._tables = service

    def handlers(self) -> Handlers:
        return {lake.LIST_TABLES: self.list, lake.GET_TABLE: self.get}

    def list(self, call: Call[None, None]) -> Steps[Insights]:
        readiness = yield from ThreadedStep(self._tables.readiness)
        found = yield from ThreadedStep(self._tables.tables)
        return Insights(readiness=readiness, folder=self._tables.folder, tables=found)

    def get(self, call: Call[None, Days]) -> Steps[InsightRows]:
        read = partial(
            self._tables.rows,
            call.path["table"],
            from_day=_FIRST_DAY if call.query.from_day is None else call.query.from_day,
            to_day=_LAST_DAY if call.query.to_day is None else call.query.to_day,
            limit=call.query.limit,
        )
        return InsightRows.copy_of((yield from ThreadedStep(read)))


class AnswerOperations:
    def __init__(self, service: AnswerService) -> None:
        self._answers = service

    def handlers(self) -> Handlers:
        return {
            lake.LIST_ANSWERS: self.list,
            lake.GET_ANSWER: self.get,
            lake.APPLY_ADVICE: self.apply,
        }

    def list(self, call: Call[None, AnsweredDays]) -> Steps[Answers]:
        return Answers(answers=[*(yield from self._answer([*QUESTIONS.values()], call.query))])

    def get(self, call: Call[None, AnsweredDays]) -> Steps[Answer]:
        [found] = yield from self._answer([_question(call)], call.query)
        return found

    def apply(self, call: Call[AdviceToApply, AnsweredDays]) -> Steps[AppliedAdvice]:
        [found] = yield from self._answer([_question(call)], call.query)
        given = call.body
        advice = current_advice(
            found.advice, given.target, settings=given.settings, before=given.before
        )
        settings = yield from self._answers.apply(found.name, advice)
        return AppliedAdvice(target=advice.target, settings=settings)

    def _answer(self, questions: Sequence[Question], days: AnsweredDays) -> Steps[Sequence[Answer]]:
        read = partial(self._answers.tables, questions, from_day=days.from_day, to_day=days.to_day)
        tables = yield from ThreadedStep(read)
        found, reply = [], self._answers.answer
        for question in questions:
            in_force = None
            if question.has_advice:
                in_force = yield from self._answers.in_force(question)
            found.append((yield from ThreadedStep(partial(reply, question, tables, in_force))))
        return found


class SqlOperations:
    def __init__(self, service: SqlService) -> None:
        self._sql = service

    def handlers(self) -> Handlers:
        return {lake.RUN_SQL: self.run}

    def run(self, call: Call[SqlStatement, None]) -> Steps[SqlRows]:
        run = partial(self._sql.run, call.body.sql, rows=call.body.limit)
        return SqlRows.copy_of((yield from ThreadedStep(run)))


def _question(call: Call[Any, AnsweredDays]) -> Question:
    name = call.path["question"]
    if name not in QUESTIONS:
        raise QuestionNotFound(name)
    return QUESTIONS[name]
