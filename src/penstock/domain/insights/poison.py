"""Which kinds are poison, since which release?  From poison_kinds and poison_releases."""

from __future__ import annotations

from typing import Any

from penstock.domain.insights.answer import (
    MAX_NAMED,
    Picture,
    Row,
    Rows,
    Unit,
    added,
    days_of,
    grouped,
    lines,
)
from penstock.domain.insights.wording import counted, number, percent, shortened

NONE = "No kind is poison in these days."
NO_RELEASES = (
    "Start workers with --label release=VERSION to see since which release a kind is poison."
)


def poison(kinds: Rows, releases: Rows) -> tuple[list[str], Picture | None]:
    days = days_of([*kinds, *releases])
    found = [
        (key, them)
        for key, them in grouped(kinds, "queue", "kind").items()
        if any(row["is_poison"] for row in them)
    ]
    if not found:
        return [NONE], None
    found.sort(key=lambda one: (-added(one[1], "failing"), str(one[0])))
    by_kind = grouped(releases, "queue", "kind")
    sentences = [_sentence(key, them, by_kind.get(key, []), days) for key, them in found]
    if len(sentences) > MAX_NAMED:
        more = f"{number(len(sentences) - MAX_NAMED)} more kinds are or were poison."
        sentences = [*sentences[:MAX_NAMED], more]
    if not any(row.get("release") is not None for row in releases):
        sentences.append(NO_RELEASES)
    return sentences, _picture(found, days)


def _sentence(key: tuple[Any, ...], rows: list[Row], releases: Rows, days: list[str]) -> str:
    since, until = _run(rows, days)
    during = [row for row in rows if since <= row["dt"] <= until]
    failing, messages = added(during, "failing"), added(during, "messages")
    crashes = added(during, "crashes")
    crashed = f", and workers crashed {counted(crashes, 'time')}" if crashes else ""
    error = max(during, key=lambda row: row["failing"]).get("common_error")
    why = f"; the usual error: {shortened(error)}" if error else ""
    share = percent(failing / messages)
    return (
        f"{_name(key)}: poison {_since(releases, since, until, days)}. {share} of "
        f"{counted(messages, 'message')} failed{crashed}{why}."
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
        grouped(named, "release").items(), key=lambda one: min(r["first_at"] for r in one[1])
    )
    found: str | None = None
    for (release,), them in reversed(in_order):
        if not any(row["is_poison"] for row in them):
            if found is None:
                continue
            share = added(them, "failing") / max(added(them, "messages"), 1)
            return found, (release, share)
        found = release
    return found, None


def _name(key: tuple[Any, ...]) -> str:
    queue, kind = key
    return f"{'Messages without a kind' if kind is None else kind} (queue {queue})"


def _picture(found: list[tuple[tuple[Any, ...], list[Row]]], days: list[str]) -> Picture | None:
    shown = found[:MAX_NAMED]
    ratios = [{row["dt"]: row["failing_ratio"] for row in them} for _, them in shown]
    names = [f"{kind or 'no kind'} ({queue})" for (queue, kind), _ in shown]
    values = [(day, [100 * of.get(day, 0.0) for of in ratios]) for day in days]
    return lines("Failing messages", Unit.PERCENT, names, values)
