"""Conditions of filters: what one value must be like.  Compiled once into functions.

The language is that of SNS's filter policies: a plain value is matched exactly, an object such as
`{"prefix": "eu-"}` is an operator.
"""

from __future__ import annotations

import ipaddress
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

from penstock.domain.errors import InvalidRequest

Test = Callable[[Any], bool]  # of one value: a string, a number, a boolean or null

MAX_NUMBER = 10**9
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_LOWER = (">", ">=")
_UPPER = ("<", "<=")
EXISTS = "exists"


class InvalidFilter(InvalidRequest):
    def __init__(self, reason: str) -> None:
        super().__init__(f"filter: {reason}")
        self.reason = reason


def compile_condition(given: Any) -> Test:
    """Raises InvalidFilter.  `exists` is not a condition of a value; see `filter_policy`."""
    if not isinstance(given, dict):
        return _equals(given)
    if len(given) != 1:
        raise InvalidFilter("Only one key allowed in match expression")
    [(name, operand)] = given.items()
    compiler = _OPERATORS.get(name)
    if compiler is None:
        raise InvalidFilter(f"Unrecognized match type {name[:100]}")
    return compiler(operand)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equals(wanted: Any) -> Test:
    if isinstance(wanted, list):
        raise InvalidFilter("Match value must be String, number, true, false, or null")
    if is_number(wanted):
        _check_number(wanted)
        return lambda value: is_number(value) and value == wanted
    kind = type(wanted)
    return lambda value: type(value) is kind and value == wanted


def _text(name: str, operand: Any) -> str:
    if not isinstance(operand, str):
        raise InvalidFilter(f"{name} match pattern must be a string")
    return operand


def _prefix(operand: Any) -> Test:
    start = _text("prefix", operand)
    return lambda value: isinstance(value, str) and value.startswith(start)


def _suffix(operand: Any) -> Test:
    end = _text("suffix", operand)
    return lambda value: isinstance(value, str) and value.endswith(end)


def _equals_ignore_case(operand: Any) -> Test:
    wanted = _text("equals-ignore-case", operand).casefold()
    return lambda value: isinstance(value, str) and value.casefold() == wanted


def _wildcard(operand: Any) -> Test:
    text = _text("wildcard", operand)
    if "**" in text:
        raise InvalidFilter("Consecutive wildcard characters are not allowed")
    first, *rest = text.split("*")
    if not rest:
        return lambda value: value == text
    *middle, last = rest

    def matches(value: Any) -> bool:
        """By searching each part behind the one before it: the time is linear in the value."""
        if not isinstance(value, str) or not value.startswith(first):
            return False
        at, end = len(first), len(value) - len(last)
        for part in middle:
            found = value.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return at <= end and value.endswith(last)

    return matches


def _cidr(operand: Any) -> Test:
    try:
        network = ipaddress.ip_network(_text("cidr", operand))
    except ValueError:
        raise InvalidFilter(f"Malformed CIDR, {str(operand)[:100]}") from None

    def matches(value: Any) -> bool:
        if not isinstance(value, str):
            return False
        try:
            address = ipaddress.ip_address(value)
        except ValueError:
            return False
        return address.version == network.version and address in network

    return matches


def _numeric(operand: Any) -> Test:
    if not isinstance(operand, list) or len(operand) not in (2, 4):
        raise InvalidFilter("Value of numeric must be an array of one or two comparisons")
    signs, numbers = operand[::2], operand[1::2]
    for sign in signs:
        if not isinstance(sign, str) or sign not in _COMPARE:
            raise InvalidFilter(f"Unrecognized numeric range operator: {str(sign)[:100]}")
    for number in numbers:
        if not is_number(number):
            raise InvalidFilter(f"Value of {signs[numbers.index(number)]} must be numeric")
        _check_number(number)
    if len(signs) == 2:
        if signs[0] not in _LOWER or signs[1] not in _UPPER:
            raise InvalidFilter("Numeric range must have a lower and an upper bound, in this order")
        if numbers[0] >= numbers[1]:
            raise InvalidFilter("Bottom must be less than top")
    return _compare_all([(_COMPARE[sign], n) for sign, n in zip(signs, numbers, strict=True)])


def _compare_all(comparisons: Sequence[tuple[Callable[[Any, Any], bool], Any]]) -> Test:
    return lambda value: (
        is_number(value) and all(compare(value, number) for compare, number in comparisons)
    )


def _check_number(number: float) -> None:
    if not -MAX_NUMBER <= number <= MAX_NUMBER:
        raise InvalidFilter(f"Value must be from -{MAX_NUMBER} to {MAX_NUMBER}, not {number}")


def _anything_but(operand: Any) -> Test:
    if isinstance(operand, dict):
        if len(operand) != 1:
            raise InvalidFilter("Only one key allowed in match expression")
        [(name, inner)] = operand.items()
        if name not in _NEGATED:
            raise InvalidFilter(f"Unsupported anything-but pattern: {name[:100]}")
        tests = [_OPERATORS[name](one) for one in _listed(inner)]
    else:
        for one in (wanted := _listed(operand)):
            if not isinstance(one, str) and not is_number(one):
                raise InvalidFilter("Value of anything-but must be strings or numbers")
        tests = [_equals(one) for one in wanted]
    return lambda value: not any(test(value) for test in tests)


def _listed(operand: Any) -> list[Any]:
    listed = operand if isinstance(operand, list) else [operand]
    if not listed:
        raise InvalidFilter("Empty arrays are not allowed")
    return listed


_OPERATORS: dict[str, Callable[[Any], Test]] = {
    "prefix": _prefix,
    "suffix": _suffix,
    "equals-ignore-case": _equals_ignore_case,
    "wildcard": _wildcard,
    "cidr": _cidr,
    "numeric": _numeric,
    "anything-but": _anything_but,
}
_NEGATED = ("prefix", "suffix", "equals-ignore-case", "wildcard")
RESERVED = frozenset({*_OPERATORS, EXISTS})  # names that an object below `$or` must not have
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


def number_of(text: str) -> float | None:
    """The value of an attribute whose type is Number."""
    return float(text) if _NUMBER.fullmatch(text) else None
