"""How chunk handlers are declared, and what may be enqueued for them."""

from __future__ import annotations

import msgspec
import pytest

from penstock import Batch


class Mail(msgspec.Struct):
    to: str
    subject: str = ""


def test_a_declined_declaration_says_what_is_wrong(app):
    def one(mail: Mail) -> None: ...
    def two(mails: list[Mail], more: int) -> None: ...
    def fit(mails: list[Mail]) -> None: ...
    def unfit(mails: list[type]) -> None: ...

    for function, options, text in (
        (one, {"batch": Batch()}, "is a list"),
        (two, {"batch": Batch()}, "takes one list"),
        (unfit, {"batch": Batch()}, "cannot be stored as JSON"),
        (fit, {"batch": Batch(max=0)}, "max must be from 1 to 500"),
        (fit, {"batch": Batch(by="tag")}, "by is one of"),  # type: ignore[arg-type]
        (fit, {"batch": Batch(wait="10s"), "timeout": "10s"}, "shorter than half"),
        (fit, {"batch": 100}, "takes a Batch"),
        (fit, {"batch": Batch(), "ignores": ("to",)}, "the type of its elements"),
    ):
        with pytest.raises(Exception, match=text):
            app.job(**options)(function)


def test_an_element_is_checked_when_it_is_enqueued_and_is_the_body(app):
    @app.job(queue="mail", batch=Batch(), unique=True)
    def send(mails: list[Mail]) -> None: ...

    sent = send.enqueue(Mail("ada"))
    assert app.jobs.get(sent).body == {"to": "ada", "subject": ""}
    assert app.enqueue("send", {"to": "ada"}).id == sent.id  # the same with its defaults
    with pytest.raises(Exception, match="Expected `str`, got `int`"):
        app.enqueue("send", {"to": 5})
    with pytest.raises(Exception, match="one element"):
        send.enqueue(Mail("a"), Mail("b"))
