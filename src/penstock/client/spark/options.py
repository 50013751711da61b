"""The `.option(…)` values, checked before Spark starts anything."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

import msgspec

from penstock.domain.duration import duration_ms
from penstock.domain.errors import InvalidRequest
from penstock.domain.lake import layout as lake
from penstock.domain.lake.progress import ArchiveSource
from penstock.domain.limits import DAY
from penstock.settings.store_url import STORES

MESSAGES = "messages"  # messages that have not ended, as in snapshots
TABLES = {
    **{s.value: s.table for s in ArchiveSource},
    "bodies": lake.BODIES,
    MESSAGES: lake.SNAPSHOTS,
}
EARLIEST, LATEST = "earliest", "latest"
_SERVERS = ("http://", "https://")
_MAX = 2**31


class SparkOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Fields have the names of the options; Spark ignores case."""

    url: str
    table: str = ArchiveSource.HISTORY.value
    page_rows: int = 2_000  # rows of one read, which is a transaction of its own
    partition_rows: int = 50_000  # rows of one task
    starting: str = EARLIEST  # where a new stream begins
    max_rows: int = 500_000  # rows of one stream batch, approximately
    api_key: str | None = None  # the API key, for a server
    queue: str | None = None  # the target queue, unless a column names it
    key: str = "key"  # the column whose value identifies a row's message
    window_ms: int = 30 * DAY  # how long a key is remembered
    batch_rows: int = 500  # messages per send


def read(options: Mapping[str, str]) -> SparkOptions:
    """Parse the options; raises InvalidRequest that names the option."""
    values: dict[str, object] = {}
    for name, text in options.items():
        values |= _read(name, text)
    if "url" not in values:
        raise InvalidRequest(
            "the option url is missing: sqlite:///path, postgresql://… or http://…"
        )
    return SparkOptions(**values)  # type: ignore[arg-type]


def readable(options: SparkOptions) -> SparkOptions:
    if not options.url.startswith(STORES):
        raise InvalidRequest(f"only a store can be read, not {options.url!r}")
    if options.table not in TABLES:
        raise InvalidRequest(f"table is one of {', '.join(TABLES)}, not {options.table!r}")
    if options.starting not in (EARLIEST, LATEST):
        raise InvalidRequest(f"starting is {EARLIEST} or {LATEST}, not {options.starting!r}")
    return options


def streamable(options: SparkOptions) -> SparkOptions:
    if options.table == MESSAGES:
        raise InvalidRequest("the table messages cannot be read as a stream: its rows change")
    return readable(options)


def writable(options: SparkOptions) -> SparkOptions:
    if not options.url.startswith((*STORES, *_SERVERS)):
        raise InvalidRequest(
            f"url is sqlite:///path, postgresql://… or http://…, not {options.url!r}"
        )
    return options


def _read(name: str, text: str) -> dict[str, object]:
    known = {field.replace("_", ""): field for field in SparkOptions.__struct_fields__}
    known["window"] = "window_ms"
    field = known.get(name.replace("_", "").lower())
    if field is None:
        if name.lower() == "path":  # added by Spark if load or save was given a path
            raise InvalidRequest("the format penstock takes no path; use .option('url', …).load()")
        close = get_close_matches(name.lower(), known, n=1)
        hint = f"; did you mean {known[close[0]]!r}?" if close else ""
        raise InvalidRequest(f"penstock has no option {name!r}{hint}")
    if field == "window_ms":
        return {field: _duration(name, text)}
    if field.endswith("_rows"):
        return {field: _count(name, text)}
    return {field: text}


def _count(name: str, text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= _MAX:
        raise InvalidRequest(f"{name} is a number from 1 to {_MAX}, not {text!r}")
    return int(text)


def _duration(name: str, text: str) -> int:
    try:
        return duration_ms(text)
    except ValueError as error:
        raise InvalidRequest(f"{name}: {error}") from None
