"""The pipeline's tables, and answers from them.  The server needs no Spark to read them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from penstock.api import tables
from penstock.api.tables import (
    AdviceToApply,
    AnsweredDays,
    Answers,
    AppliedAdvice,
    Days,
    InsightRows,
    Insights,
)
from penstock.domain.errors import QuestionNotFound
from penstock.domain.insights.answer import Answer
from penstock.domain.insights.questions import QUESTIONS, Question, answer
from penstock.operations.call import Call, Handlers
from penstock.ports.unit_of_work import Steps, ThreadedStep
from penstock.services.answers import AnswerService, current_advice
from penstock.services.lake import Tables

_FIRST_DAY, _LAST_DAY = "0000-01-01", "9999-12-31"


class AnswerOperations:
    def __init__(self, service: AnswerService) -> None:
        self._answers = service

    def handlers(self) -> Handlers:
        return {
            tables.LIST_ANSWERS: self.list,
            tables.GET_ANSWER: self.get,
            tables.APPLY_ADVICE: self.apply,
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
        read = partial(self._answers.rows, questions, from_day=days.from_day, to_day=days.to_day)
        rows = yield from ThreadedStep(read)
        found = []
        for question in questions:
            in_force = None
            if question.has_advice:
                in_force = yield from self._answers.in_force(question, rows)
            found.append((yield from ThreadedStep(partial(answer, question, rows, in_force))))
        return found


def _question(call: Call[Any, AnsweredDays]) -> Question:
    name = call.path["question"]
    if name not in QUESTIONS:
        raise QuestionNotFound(name)
    return QUESTIONS[name]


class TableOperations:
    def __init__(self, service: Tables) -> None:
        self._tables = service

    def handlers(self) -> Handlers:
        return {tables.LIST: self.list, tables.GET: self.get}

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
