"""Answers in words from the pipeline's tables, and applying their advice."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.api import lake
from penstock.api.lake import AdviceToApply, AnsweredDays, AppliedAdvice
from penstock.client.resources.resource import ResourceClient
from penstock.domain.insights.answer import Advice, Answer


class AnswerClient(ResourceClient):
    def list(self, *, from_day: str | None = None, to_day: str | None = None) -> Sequence[Answer]:
        """Answer all questions."""
        query = AnsweredDays(from_day=from_day, to_day=to_day)
        return self._request(lake.LIST_ANSWERS, query=query).answers

    def get(
        self, question: str, *, from_day: str | None = None, to_day: str | None = None
    ) -> Answer:
        """Raises QuestionNotFound."""
        query = AnsweredDays(from_day=from_day, to_day=to_day)
        return self._request(lake.GET_ANSWER, query=query, question=question)

    def apply(
        self,
        question: str,
        advice: Advice,
        *,
        from_day: str | None = None,
        to_day: str | None = None,
    ) -> AppliedAdvice:
        """Apply advice of an answer from the same days; raises AdviceOutdated."""
        wanted = AdviceToApply(target=advice.target, settings=advice.settings, before=advice.before)
        query = AnsweredDays(from_day=from_day, to_day=to_day)
        return self._request(lake.APPLY_ADVICE, wanted, query=query, question=question)
