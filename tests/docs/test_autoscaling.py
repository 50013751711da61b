"""The pages about autoscaling: their files are valid, and their tables agree with the code."""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import get_args

import msgspec
import pytest

from penstock.domain.datetimes import instant_of
from penstock.domain.duration import duration_ms
from penstock.domain.limits import HOUR
from penstock.domain.scaling.fleet import (
    AlertSpec,
    CommandSpec,
    External,
    Fleet,
    Fleets,
    Kubernetes,
    Processes,
)
from penstock.domain.scaling.fleet_run import Cause
from penstock.domain.scaling.fleet_schedule import Period
from penstock.domain.scaling.fleet_sources import (
    PrometheusSource,
    RabbitSource,
    RedisSource,
    SourceSpec,
    SqsSource,
)
from penstock.domain.scaling.governor import Bound
from penstock.domain.scaling.pressure import PressureLimits
from penstock.domain.scaling.recommendation import Profile, ScalingReason
from penstock.settings.fleets import parse_fleets
from tests.docs.snippets import read_blocks, read_table

PAGE = "docs/autoscaling.md"
PARTS = "docs/autoscaling-replicas.md"
# Tables of their own, and the name, which is the table's.
ELSEWHERE = {"profiles", "sources", "pressure", "alerts", "fleets", "name", "schedule"}


def read_keys(mark: str, page: str = PAGE) -> dict[str, str]:
    """Keys and their defaults, as they are written."""
    pairs: dict[str, str] = {}
    for cells in read_table(mark, page):
        keys = re.findall(r"`(\w+)`", cells[0])
        defaults = [one.strip() for one in re.split(r"`, `", cells[1].strip("`"))]
        pairs.update(zip(keys, defaults * len(keys) if len(defaults) < len(keys) else defaults))  # noqa: B905
    return pairs


@pytest.mark.parametrize(
    ("struct", "page"),
    [
        *((one, PAGE) for one in (Fleets, Profile, Fleet, Period, PressureLimits, AlertSpec)),
        *((one, PARTS) for one in get_args(SourceSpec)),
        *((one, PARTS) for one in (Processes, CommandSpec, Kubernetes, External)),
    ],
)
def test_the_tables_list_every_key_with_its_default(
    struct: type[msgspec.Struct], page: str
) -> None:
    found = read_keys(f"keys {struct.__name__}", page)
    elsewhere = ELSEWHERE if struct in (Fleets, Fleet) else set()
    fields = [one for one in msgspec.structs.fields(struct) if one.name not in elsewhere]

    assert set(found) == {one.encode_name for one in fields}
    for one in fields:
        made = one.default_factory
        default = one.default if made is msgspec.NODEFAULT else made()
        assert states(found[one.encode_name], default), one.name


def states(text: str, default: object) -> bool:
    """Whether the text on the page states this default."""
    if default is msgspec.NODEFAULT:
        return text == ""
    if default is None:
        return text in ("unset", "as level 1")
    if isinstance(default, bool):
        return text == str(default).lower()
    if isinstance(default, dict):
        return text == "{}"
    if isinstance(default, tuple) and default and isinstance(default[0], str):
        return re.findall(r'"([^"]*)"', text) == list(default)
    if isinstance(default, tuple):
        return [float(number) for number in re.findall(r"[\d.]+", text)] == list(default)
    if isinstance(default, int):
        return (int(text) if text.isdecimal() else duration_ms(text)) == default
    return text == default


def test_every_reason_is_explained() -> None:
    reasons: list[type[StrEnum]] = [ScalingReason, Bound, Cause]
    known = {str(each) for kind in reasons for each in kind}

    explained = {
        name for cells in read_table("reasons", PAGE) for name in re.findall(r"`(\w+)`", cells[0])
    }

    assert explained == known | {"source_unavailable", "queue_unknown", "internal"}


def test_the_files_of_the_page_are_valid() -> None:
    first, rabbit = (
        parse_fleets(read_blocks(PAGE, "first")),
        parse_fleets(read_blocks(PAGE, "rabbit")),
    )

    assert list(first.fleets) == ["mail"]
    orders = rabbit.fleets["orders"]
    assert isinstance(orders.replicas, Kubernetes)
    assert isinstance(rabbit.source_of(orders), RabbitSource)


def test_the_file_with_a_schedule_is_valid() -> None:
    mail = parse_fleets(read_blocks(PAGE, "schedule")).fleets["mail"]
    noon = datetime.fromisoformat("2026-11-16T12:00+01:00")

    assert [mail.at(instant_of(noon)).min, mail.at(instant_of(noon) + 12 * HOUR).max] == [5, 2]


def test_the_file_with_other_goals_is_valid() -> None:
    found = parse_fleets(read_blocks(PAGE, "goals"))

    mail = found.fleets["mail"]
    assert mail.all_queues == ("mail", "mail-bulk")
    assert found.profile_of(mail).oldest_goal_ms == 30_000


def test_the_file_with_other_sources_is_valid() -> None:
    found = parse_fleets(read_blocks(PARTS, "other sources"))

    kinds = [type(found.source_of(one)) for one in found.fleets.values()]
    assert kinds == [SqsSource, RedisSource, PrometheusSource]


def test_the_file_of_a_fleet_that_runs_another_program_is_valid() -> None:
    found = parse_fleets(read_blocks(PARTS, "run")).fleets["consumers"].replicas

    assert isinstance(found, Processes)
    assert found.run[1:] == ("consume.py",)
