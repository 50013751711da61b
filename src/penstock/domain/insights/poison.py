"""Which kinds are poison, and since which release?  From poison_kinds and poison_releases.

There may be a million kinds: only those that are poison are remembered, and only the rows of those
that the answer names.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from penstock.domain.insights.answer import (
    MAX_NAMED,
    Chart,
    Row,
    Rows,
    SourceTable,
    Unit,
    group_by,
    lines,
    total,
)
from penstock.domain.insights.wording import count_phrase, number, percent, shorten

NO_DATA = "No poison kinds in this period."
NO_RELEASES = (
    "Start workers with --label release=VERSION to see since which release a kind is poison."
)
_KIND = ("queue", "kind")
_COUNTS = ("messages", "failing", "is_poison")

_Key = tuple[Any, Any]  # queue, kind


def poison(kinds: SourceTable, releases: SourceTable) -> tuple[list[str], Chart | None]:
    days, worst = _worst(kinds)
    if not worst:
        return [NO_DATA], None
    named = worst[:MAX_NAMED]
    columns = (*_COUNTS, "failing_ratio", "crashes", "common_error")
    rows = group_by(_rows_of(kinds, named, *columns), *_KIND)
    seen: set[str] = set()
    by_kind: dict[tuple[Any, ...], list[Row]] = {}
    has_releases = False
    for row in releases.rows(*_KIND, "release", "first_at", *_COUNTS):
        seen.add(row["dt"])
        has_releases |= row["release"] is not None
        if _key(row) in rows:
            by_kind.setdefault(_key(row), []).append(row)
    all_days = sorted(days | seen)
    sentences = [_sentence(key, rows[key], by_kind.get(key, []), all_days) for key in named]
    if len(worst) > MAX_NAMED:
        sentences.append(f"{number(len(worst) - MAX_NAMED)} more kinds are or were poison.")
    if not has_releases:
        sentences.append(NO_RELEASES)
    return sentences, _chart([(key, rows[key]) for key in named], all_days)


def _worst(kinds: SourceTable) -> tuple[set[str], list[_Key]]:
    """The days that have rows, and the kinds that are or were poison: most failing first."""
    days: set[str] = set()
    failing: dict[_Key, int] = {}
    for row in kinds.rows(*_KIND, "is_poison"):
        days.add(row["dt"])
        if row["is_poison"]:
            failing[_key(row)] = 0
    for row in _rows_of(kinds, failing, "failing"):
        failing[_key(row)] += row["failing"]
    return days, sorted(failing, key=lambda key: (-failing[key], str(key)))


def _rows_of(kinds: SourceTable, keys: Collection[_Key], *columns: str) -> Iterator[Row]:
    found = kinds.rows(*_KIND, *columns, kind={kind for _, kind in keys})
    return (row for row in found if _key(row) in keys)


def _key(row: Row) -> _Key:
    return row["queue"], row["kind"]


def _sentence(key: tuple[Any, ...], rows: list[Row], releases: Rows, days: list[str]) -> str:
    since, until = _run(rows, days)
    during = [row for row in rows if since <= row["dt"] <= until]
    failing, messages = total(during, "failing"), total(during, "messages")
    crashes = total(during, "crashes")
    crashed = f", and workers crashed {count_phrase(crashes, 'time')}" if crashes else ""
    error = max(during, key=lambda row: row["failing"]).get("common_error")
    why = f"; most common error: {shorten(error)}" if error else ""
    share = percent(failing / messages)
    return (
        f"{_name(key)}: poison {_since(releases, since, until, days)}. {share} of "
        f"{count_phrase(messages, 'message')} failed{crashed}{why}."
    )


def _run(rows: list[Row], days: list[str]) -> tuple[str, str]:
    """The first and last day of the latest days in a row on which it is poison.

    A day without a row does not end it: nothing of this kind may have ended on that day.
    """
    state = {row["dt"]: row["is_poison"] for row in rows}
    until = max(day for day, is_poison in state.items() if is_poison)
    since = until
    for day in sorted((day for day in days if day < until), reverse=True):
        if state.get(day) is False:
            break
        since = day if state.get(day) else since
    return since, until


def _since(releases: Rows, since: str, until: str, days: list[str]) -> str:
    if any(day > until for day in days):
        return f"from {since} to {until}"
    release, before = _first_release([row for row in releases if row["dt"] <= until])
    if release is None:
        return f"since {since}"
    known = "" if before is None else f"; with release {before[0]}, {percent(before[1])} failed"
    return f"since release {release} ({since}{known})"


def _first_release(rows: Rows) -> tuple[str | None, tuple[str, float] | None]:
    """The release with which it began, and the one before it with its share of failing messages."""
    named = [row for row in rows if row.get("release") is not None]
    in_order = sorted(
        group_by(named, "release").items(), key=lambda one: min(r["first_at"] for r in one[1])
    )
    found: str | None = None
    for (release,), them in reversed(in_order):
        if not any(row["is_poison"] for row in them):
            if found is None:
                continue
            share = total(them, "failing") / max(total(them, "messages"), 1)
            return found, (release, share)
        found = release
    return found, None


def _name(key: tuple[Any, ...]) -> str:
    queue, kind = key
    return f"{'Messages without a kind' if kind is None else kind} (queue {queue})"


def _chart(found: list[tuple[tuple[Any, ...], list[Row]]], days: list[str]) -> Chart | None:
    ratios = [{row["dt"]: row["failing_ratio"] for row in them} for _, them in found]
    names = [f"{kind or 'no kind'} ({queue})" for (queue, kind), _ in found]
    values = [(day, [100 * of.get(day, 0.0) for of in ratios]) for day in days]
    return lines("Failing messages", Unit.PERCENT, names, values)
