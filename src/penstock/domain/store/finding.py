"""Findings of a check-up."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Grade(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(msgspec.Struct, frozen=True):
    name: str
    grade: Grade
    text: str


def ok(name: str, text: str) -> Finding:
    return Finding(name, Grade.OK, text)


def warn(name: str, text: str) -> Finding:
    return Finding(name, Grade.WARN, text)


def fail(name: str, text: str) -> Finding:
    return Finding(name, Grade.FAIL, text)
