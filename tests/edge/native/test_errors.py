"""Every error has a status and a stable code, and the documentation lists the same."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.domain import errors
from penstock.domain.errors import PenstockError, StoreUnavailable, all_errors
from penstock.edge.server.errors import STATUS, error_response, unexpected
from penstock.store.database import WriteLockTimeout

PAGE = Path(__file__).parents[3] / "docs" / "http-api.md"

# No client ever sees these: base classes, errors that keep a program from starting, and errors
# of the autoscaler and the archiver in their own processes.
NEVER_SENT = {
    *("conflict", "store_refused", "transaction_busy"),
    *("fleets_refused", "default_profile_missing", "source_unknown"),
    "job_failed",  # raised by the client
    *("queue_unknown", "source_unavailable", "replicas_unavailable"),
    "lake_refused",
}


def documented() -> Iterator[tuple[str, int]]:
    """The rows of the first table: | 404 | `queue_not_found`, `not_found` |"""
    section = PAGE.read_text().partition("## Errors")[2].partition("\n## ")[0]
    for status, codes in re.findall(r"^\| (\d{3}) \| (.+) \|$", section, re.MULTILINE):
        for code in re.findall(r"`(\w+)`", codes):
            yield code, int(status)


def test_every_error_of_the_domain_has_a_status() -> None:
    assert set(STATUS) == set(all_errors())
    assert [error for error in STATUS if STATUS[error] == 500] == [PenstockError]


def test_the_page_lists_every_code_with_its_status() -> None:
    statuses = {error.code: status for error, status in STATUS.items()}

    assert dict(documented()) == {
        code: status for code, status in statuses.items() if code not in NEVER_SENT
    }


@pytest.mark.parametrize("error", all_errors())
def test_every_error_is_answered_in_the_one_shape(error: type[PenstockError]) -> None:
    response = error_response(error("because"))

    assert response.status == STATUS[error]
    parsed = json.loads(response.body)
    assert parsed == {"error": {"code": error.code, "message": parsed["error"]["message"]}}


def test_an_error_without_a_code_of_its_own_is_answered_as_the_one_it_is_a_case_of() -> None:
    answers = [error_response(error("because")) for error in (WriteLockTimeout, StoreUnavailable)]

    assert [answer.status for answer in answers] == [503, 503]
    assert answers[0].body == answers[1].body


def test_internal_errors_are_logged_and_not_shown_to_clients(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cause = ValueError("the secret of the house")
    wrapped = PenstockError("also secret")
    wrapped.__cause__ = cause

    with caplog.at_level(logging.ERROR, "penstock.http"):
        answers = [unexpected(cause), error_response(wrapped)]

    for answer in answers:
        assert answer.status == 500
        parsed = json.loads(answer.body)
        assert parsed == {"error": {"code": "internal", "message": "internal error"}}
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [cause, cause]


def test_errors_for_a_wrong_method_or_a_missing_key_say_what_to_do() -> None:
    wrong = error_response(errors.MethodNotAllowed("no", ("GET", "HEAD")))
    missing = error_response(errors.Unauthenticated("no"))

    assert wrong.headers == ((b"allow", b"GET, HEAD"),)
    assert missing.headers == ((b"www-authenticate", b"Bearer"),)
