"""A DuckDB in memory in which a statement can do nothing but read the given tables.

Tables are registered as Arrow datasets, so DuckDB itself needs no files: access to files, the
network and extensions is off, and the configuration is locked.  Only one statement is accepted, and
only one that reads: everything else would be refused by the configuration too, or be lost with the
memory.
"""

from __future__ import annotations

import re
from typing import Any

import duckdb
import msgspec
import pyarrow as pa

from penstock.domain.errors import SqlFailed
from penstock.domain.lake.sql import SqlColumn, SqlLimits, SqlResult
from penstock.outbound.lake_sql.datasets import LakeDatasets

_LOCKED = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_persistent_secrets": "false",
    "python_enable_replacements": "false",  # a table cannot be a variable of this program
    "temp_directory": "",  # nothing is written to disk
}
_READING = ("SELECT", "EXPLAIN")  # DESCRIBE, SHOW, VALUES and FROM count as SELECT
# The catalogue, and functions that take the name of a table as a text, need all tables.
_CATALOGUE = re.compile(
    r"\b(show|information_schema|duckdb_\w+|pg_\w+|sqlite_\w+|query|query_table)\b", re.IGNORECASE
)
_LARGEST, _SMALLEST = 2**63 - 1, -(2**63)  # of integers in JSON
_PLACE = re.compile(r"\n+LINE (\d+):.*", re.DOTALL)
_encoder = msgspec.json.Encoder(decimal_format="number")


def run(statement: str, datasets: LakeDatasets, limits: SqlLimits) -> SqlResult:
    """Raises SqlFailed."""
    try:
        with duckdb.connect(":memory:", config=_config(limits)) as database:
            database.execute("SET TimeZone = 'UTC'")  # of an extension, so not in the config
            database.execute("SET lock_configuration = true")
            _check(database.extract_statements(statement))
            for name in _needed(statement, datasets.names()):
                database.register(name, datasets.dataset(name))
            return _read(database.sql(statement), limits)
    except (MemoryError, duckdb.OutOfMemoryException):
        raise SqlFailed(
            f"the statement needs more than {limits.memory_bytes // 2**20} MiB of memory; read "
            "fewer days or columns, or raise sql.max_memory_bytes"
        ) from None
    except duckdb.Error as error:
        raise SqlFailed(_one_line(str(error))) from None
    except (pa.ArrowException, OSError) as error:  # a file is damaged or was replaced
        raise SqlFailed(f"a file of the lake cannot be read: {_one_line(str(error))}") from None


def _config(limits: SqlLimits) -> dict[str, Any]:
    return {**_LOCKED, "memory_limit": f"{limits.memory_bytes}B"}


def _check(statements: list[Any]) -> None:
    if len(statements) != 1:
        raise SqlFailed(f"one statement is needed, not {len(statements)}")
    [statement] = statements
    if statement.type.name == "MULTI":
        raise SqlFailed("PIVOT needs the values of its columns: ON column IN (…)")
    if statement.type.name not in _READING:
        raise SqlFailed(f"only SELECT is allowed, not {statement.type.name}")


def _needed(text: str, names: list[str]) -> list[str]:
    """The tables that the statement names: listing the files of all of them takes time."""
    words = {word.lower() for word in re.findall(r"\w+", text)}
    named = [name for name in names if name in words]
    return names if not named or _CATALOGUE.search(text) else named


def _read(found: Any, limits: SqlLimits) -> SqlResult:
    types = [str(kind) for kind in found.types]
    columns = [SqlColumn(name, kind) for name, kind in zip(found.columns, types, strict=True)]
    rows: list[Any] = []
    size, is_cut = 0, False
    for row in found.limit(limits.rows + 1).fetchall():
        encoded = _encoder.encode([_plain(value) for value in row])
        size += len(encoded)
        is_cut = len(rows) == limits.rows or size > limits.bytes
        if is_cut:
            break
        rows.append(msgspec.Raw(encoded))
    if is_cut and not rows:
        raise SqlFailed(f"one row of the result has more than {limits.bytes} bytes")
    return SqlResult(columns=columns, rows=rows, is_cut=is_cut)


def _plain(value: Any) -> Any:
    """A value that JSON can express; msgspec encodes dates, decimals and the like."""
    match value:
        case bool():
            return value
        case int():
            return value if _SMALLEST <= value <= _LARGEST else str(value)
        case dict():
            return {_key(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
    return value


def _key(key: Any) -> str:
    return key if isinstance(key, str) else _encoder.encode(_plain(key)).decode().strip('"')


def _one_line(text: str) -> str:
    place = _PLACE.search(text)
    plain = " ".join(_PLACE.sub("", text).split())
    return plain if place is None else f"{plain}; line {place[1]}"
