"""Arguments survive JSON unchanged, or are rejected by name."""

from __future__ import annotations

import enum
import math
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from penstock.client.values.arguments import Arguments
from penstock.domain.errors import InvalidRequest

pytestmark = pytest.mark.no_store("codec")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(msgspec.Struct, frozen=True):
    x: float
    y: float


@dataclass
class Line:
    name: str
    amount: Decimal
    tags: list[str] = field(default_factory=list)


@dataclass
class Order:
    id: UUID
    at: datetime
    lines: dict[str, Line]
    colour: Colour | None = None
    near: Point | None = None


class Place(NamedTuple):
    row: int
    column: int


class Extra(TypedDict):
    note: str


class Letter(BaseModel):
    to: str
    on: date


class Unknown:
    pass


def everything(
    order: Order,
    when: date,
    at: time,
    long: timedelta,
    raw: bytes,
    ids: frozenset[UUID],
    place: Place,
    extra: Extra,
    number: int,
    ratio: float,
    mode: Literal["a", "b"],
    small: Annotated[int, msgspec.Meta(ge=0, le=9)],
    anything: Any,
) -> None: ...


EVERYTHING = Arguments(everything, "everything")
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=10,
)
texts = st.text(st.characters(codec="utf-8"))
decimals = st.decimals(allow_nan=False, allow_infinity=False)
instants = st.datetimes(timezones=st.just(UTC))
orders = st.builds(
    Order,
    id=st.uuids(),
    at=instants,
    lines=st.dictionaries(
        texts, st.builds(Line, name=texts, amount=decimals, tags=st.lists(texts))
    ),
    colour=st.none() | st.sampled_from(Colour),
    near=st.none()
    | st.builds(
        Point,
        st.floats(allow_nan=False, allow_infinity=False),
        st.floats(allow_nan=False, allow_infinity=False),
    ),
)
all_arguments = st.fixed_dictionaries(
    {
        "order": orders,
        "when": st.dates(),
        "at": st.times(),
        "long": st.timedeltas(timedelta(days=-10_000), timedelta(days=10_000)),
        "raw": st.binary(),
        "ids": st.frozensets(st.uuids()),
        "place": st.builds(Place, st.integers(0, 9), st.integers(0, 9)),
        "extra": st.fixed_dictionaries({"note": texts}),
        "number": st.integers(),
        "ratio": st.floats(allow_nan=False, allow_infinity=False),
        "mode": st.sampled_from(["a", "b"]),
        "small": st.integers(0, 9),
        "anything": json_values,
    }
)


@given(all_arguments)
def test_arguments_of_all_types_come_back_as_they_were(arguments):
    args, kwargs = EVERYTHING.read(EVERYTHING.write((), arguments))

    expected = [arguments[name] for name in EVERYTHING.names]
    assert args == expected
    assert [type(arg) for arg in args] == [type(value) for value in expected]
    assert kwargs == {}


@given(all_arguments)
def test_the_same_arguments_have_the_same_canonical_form_in_whatever_order(arguments):
    shuffled = dict(sorted(arguments.items(), reverse=True))

    forms = {EVERYTHING.canonical(EVERYTHING.write((), a)) for a in (arguments, shuffled)}

    assert len(forms) == 1


def collecting(a: int, b: int = 2, /, c: int = 3, *rest: date, d=4, **more: Decimal) -> None: ...


@given(
    st.lists(st.integers(), min_size=1, max_size=3),
    st.lists(st.dates()),
    st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), decimals),
)
def test_a_call_is_the_same_call_when_it_is_run(first, rest, more):
    args = (*first, *rest) if len(first) == 3 else tuple(first)
    kwargs = {name: value for name, value in more.items() if name not in ("a", "b", "c", "d")}
    arguments = Arguments(collecting, "collecting")

    read_args, read_kwargs = arguments.read(arguments.write(args, kwargs))

    assert read_args[: len(args)] == list(args)
    assert read_args[len(args) :] == [1, 2, 3][len(args) :]
    assert read_kwargs == kwargs


@given(st.text() | st.binary().map(lambda b: b.decode("latin-1")) | json_values.map(str))
def test_any_body_fits_or_is_rejected(body):
    with suppress(InvalidRequest):
        EVERYTHING.read(body)


def test_a_default_argument_is_not_stored_so_that_a_later_default_applies():
    def before(to: str, subject: str = "hi") -> None: ...
    def after(to: str, subject: str = "hello") -> None: ...

    body = Arguments(before, "mail").write(("ada",), {})

    assert body == '{"to":"ada"}'
    assert Arguments(after, "mail").read(body) == (["ada", "hello"], {})


def test_a_new_parameter_with_a_default_takes_older_bodies():
    def after(to: str, *, urgent: bool = False) -> None: ...

    assert Arguments(after, "mail").read('{"to":"ada"}') == (["ada"], {})


def test_a_message_without_a_body_has_no_arguments():
    def tick(every: int = 5) -> None: ...

    assert Arguments(tick, "tick").read("null") == ([5], {})


def test_an_argument_that_is_not_known_is_refused_because_it_may_matter():
    def mail(to: str, **more: int) -> None: ...

    with pytest.raises(InvalidRequest, match="job 'mail': there is no argument `dry_run`"):
        Arguments(mail, "mail").read('{"to":"ada","dry_run":true}')


def test_a_parameter_that_was_taken_away_can_be_named_and_is_ignored():
    def mail(to: str) -> None: ...

    arguments = Arguments(mail, "mail", ignores=("colour",))

    assert arguments.read('{"to":"ada","colour":[1]}') == (["ada"], {})
    with pytest.raises(InvalidRequest, match="cannot ignore it"):
        Arguments(mail, "mail", ignores=("to",))


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ('{"to":5}', "argument 'to': Expected `str`, got `int`"),
        ("{}", "missing a required argument: `to`"),
        ("null", "missing a required argument: `to`"),
        ("[]", "Expected `object`, got `array`"),
        ("{", "truncated"),
        ("", "truncated"),
    ],
)
def test_a_body_from_elsewhere_is_checked_before_it_is_run(body, complaint):
    def mail(to: str) -> None: ...

    with pytest.raises(InvalidRequest, match=f"job 'mail': .*{complaint}"):
        Arguments(mail, "mail").read(body)


def test_a_wrong_value_deep_inside_is_named_by_its_path():
    order = Order(UUID(int=1), datetime(2030, 1, 1, tzinfo=UTC), {"a": Line(5, Decimal(1))})  # type: ignore[arg-type]

    def ship(order: Order) -> None: ...

    with pytest.raises(InvalidRequest, match=r"job 'ship': argument 'order.lines\[...\].name'"):
        Arguments(ship, "ship").write((order,), {})


@pytest.mark.parametrize(
    "value",
    [
        *(datetime(2030, 1, 1, tzinfo=UTC), UUID(int=1), {1: 2}, {1, 2}, math.nan, math.inf),
        *(Unknown(), b"bytes", Decimal(1), [Unknown()], {"a": math.nan}, Colour.RED),
    ],
)
def test_without_an_annotation_only_plain_json_is_taken(value):
    def mail(to) -> None: ...

    with pytest.raises(InvalidRequest, match="job 'mail': argument 'to' has no annotation"):
        Arguments(mail, "mail").write((value,), {})


@given(json_values)
def test_without_an_annotation_all_json_is_taken(value):
    def mail(to) -> None: ...

    arguments = Arguments(mail, "mail")

    assert arguments.read(arguments.write((value,), {})) == ([value], {})


def test_a_number_that_json_cannot_carry_is_refused():
    def measure(x: float) -> None: ...

    with pytest.raises(InvalidRequest, match="argument 'x'"):
        Arguments(measure, "measure").write((math.nan,), {})


def test_pydantic_models_are_taken_too():
    def post(letters: list[Letter]) -> None: ...

    arguments = Arguments(post, "post")
    letters = [Letter(to="ada", on=date(2030, 1, 1))]

    assert arguments.read(arguments.write((letters,), {})) == ([letters], {})
    with pytest.raises(InvalidRequest, match=r"job 'post': argument 'letters\[0\]'"):
        arguments.read('{"letters":[{"to":"ada"}]}')


@dataclass
class Holder:
    inside: list[Unknown]


@pytest.mark.parametrize("kind", [Unknown, list[Unknown], Holder, Order | Line, msgspec.Raw])
def test_a_parameter_that_json_cannot_carry_is_refused_where_it_is_declared(kind):
    def ship(what) -> None: ...

    ship.__annotations__["what"] = kind

    with pytest.raises(
        InvalidRequest, match="job 'ship': parameter 'what' cannot be stored as JSON"
    ):
        Arguments(ship, "ship")


class Tree(msgspec.Struct):
    children: list[Tree] = []


def test_a_type_may_hold_itself():
    def grow(tree: Tree) -> None: ...

    arguments = Arguments(grow, "grow")

    assert arguments.read(arguments.write((Tree([Tree()]),), {})) == ([Tree([Tree()])], {})


def test_a_type_that_is_not_defined_yet_is_looked_up_when_it_is_needed():
    def ship(what) -> None: ...

    ship.__annotations__["what"] = "Later"
    arguments = Arguments(ship, "ship")
    globals()["Later"] = Point
    try:
        assert arguments.read('{"what":{"x":1,"y":2}}') == ([Point(1, 2)], {})
    finally:
        del globals()["Later"]
