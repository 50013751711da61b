"""Answers from the pipeline's tables, and their advice applied."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from penstock.api import answers as api
from penstock.api.answers import AdviceToApply, AnsweredDays, Answers, AppliedAdvice
from penstock.domain.errors import QuestionNotFound
from penstock.domain.insights.answer import Answer
from penstock.domain.insights.questions import QUESTIONS, Question
from penstock.operations.call import Call, Handlers
from penstock.ports.unit_of_work import Steps, ThreadedStep
from penstock.services.answers import AnswerService, current_advice


class AnswerOperations:
    def __init__(self, service: AnswerService) -> None:
        self._answers = service

    def handlers(self) -> Handlers:
        return {
            api.LIST: self.list,
            api.GET: self.get,
            api.APPLY: self.apply,
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


def _question(call: Call[Any, AnsweredDays]) -> Question:
    name = call.path["question"]
    if name not in QUESTIONS:
        raise QuestionNotFound(name)
    return QUESTIONS[name]
