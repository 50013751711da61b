"""The line that names an error, and the group that an error belongs to."""

import pytest

from penstock.domain.message.error_line import error_line, error_name
from penstock.worker.error_text import error_text

OWN = """\
shop.errors.PaymentDeclined: no funds for 4711
  at /venv/lib/python3.11/site-packages/stripe/api.py:99 in post
  at /app/shopjobs.py:22 in charge: raise PaymentDeclined(card) from error
caused by TimeoutError: 30 s
  at /app/http.py:7 in get: return wait()"""
PYTHON = """\
Traceback (most recent call last):
  File "/app/shopjobs.py", line 22, in charge
    call(card)
  File "/venv/lib/python3.11/site-packages/stripe/api.py", line 99, in post
    raise PaymentDeclined(card)
stripe.PaymentDeclined: no funds for 4711
and a second line"""


def test_the_line_has_the_exception_and_the_place_in_the_application():
    assert error_line(OWN) == "shop.errors.PaymentDeclined: no funds for 4711 at shopjobs.py:22"
    assert error_line(PYTHON) == "stripe.PaymentDeclined: no funds for 4711 at shopjobs.py:22"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("SMTP 451: try again later", "SMTP 451: try again later"),
        ("\n  the template was not found\nmore", "the template was not found"),
        ("", ""),
        ("Traceback (most recent call last):", "Traceback (most recent call last):"),
        ("x" * 1_000, "x" * 300),
    ],
)
def test_other_texts_are_named_by_their_first_line(text: str, line: str):
    assert error_line(text) == line


def test_errors_of_one_exception_and_place_are_one_group_whatever_their_text():
    other = OWN.replace("4711", "4712")

    assert error_name(OWN) == error_name(other)
    assert error_name(OWN).group_id == error_name(other).group_id
    assert error_name(OWN).error == "shop.errors.PaymentDeclined"
    assert error_name(OWN) != error_name(OWN.replace(":22", ":23"))
    assert error_name(OWN) != error_name(OWN.replace("PaymentDeclined", "CardExpired"))


def test_texts_that_differ_in_numbers_and_ids_are_one_group():
    one, other = "HTTP 500 from 10.0.0.7", "HTTP 502 from 10.0.0.19"

    assert error_name(one) == error_name(other)
    assert error_name(one).error == "HTTP … from ….….….…"
    assert error_name("lease expired") != error_name("worker died")


def test_the_text_that_a_worker_stores_is_understood():
    try:
        raise ValueError("17 is too many")
    except ValueError as error:
        text = error_text(error)

    assert error_line(text).startswith("ValueError: 17 is too many at test_error_line.py:")
