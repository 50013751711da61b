"""Send the rows of a DataFrame as messages, in bulk, each key once.

Spark may run a task or a job again: a row whose key was sent before is a duplicate and changes
nothing, as long as keys are remembered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import LongType, StringType, StructType

from penstock.client.app import Penstock
from penstock.client.spark.options import SparkOptions
from penstock.domain.chunks import chunks
from penstock.domain.errors import InvalidRequest, PenstockError
from penstock.domain.message.draft import Draft

_TEXTS = ("queue", "body", "kind", "entity_id", "tag1", "tag2", "group_key", "route", "trace")
_NUMBERS = ("priority", "due_at", "expires_at", "max_attempts", "timeout_ms")
_OTHERS = ("attributes",)
Row = dict[str, object]
_attributes = msgspec.json.Decoder(dict[str, str])


class Written(WriterCommitMessage):
    def __init__(self, sent: int, duplicates: int) -> None:
        self.sent = sent
        self.duplicates = duplicates


class Writer(DataSourceArrowWriter):
    def __init__(self, options: SparkOptions, schema: StructType) -> None:
        refuse_unfit(options, schema)
        self._choices = options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        options, sent, duplicates = self._choices, 0, 0
        with Penstock(options.url, key=options.api_key) as app:
            for batch in iterator:
                for queue, drafts in _chunks(batch.to_pylist(), options):
                    for answer in app.backend.send(queue, drafts):
                        if isinstance(answer, PenstockError):
                            raise answer
                        sent += not answer.is_duplicate
                        duplicates += answer.is_duplicate
        return Written(sent, duplicates)


def refuse_unfit(options: SparkOptions, schema: StructType) -> None:
    """Raise InvalidRequest for the first column that is missing, unknown or of a wrong type."""
    names = {field.name for field in schema}
    known = {*_TEXTS, *_NUMBERS, *_OTHERS, options.key}
    if unknown := sorted(names - known):
        raise InvalidRequest(f"unknown column {unknown[0]!r}; known: {sorted(known)}")
    if "body" not in names:
        raise InvalidRequest("a column body is missing: the JSON text of each message")
    if options.key not in names:
        raise InvalidRequest(
            f"the column {options.key!r}, which identifies each message, is missing; name "
            "another one with .option('key', …)"
        )
    if "queue" not in names and options.queue is None:
        raise InvalidRequest("no queue is named: add a column queue, or use .option('queue', …)")
    for field in schema:
        wanted = LongType() if field.name in _NUMBERS else StringType()
        is_number = field.dataType.typeName() in ("integer", "long", "short", "byte")
        if field.name in _OTHERS and field.dataType.typeName() == "map":
            continue
        if isinstance(wanted, LongType) != is_number:
            raise InvalidRequest(
                f"column {field.name!r} is {wanted.simpleString()}, not "
                f"{field.dataType.simpleString()}"
            )


def _chunks(rows: Sequence[Row], options: SparkOptions) -> Iterator[tuple[str, Sequence[Draft]]]:
    """Batches by queue, in the order of the rows."""
    for queue, group in groupby(rows, key=lambda row: row.get("queue") or options.queue):
        if not isinstance(queue, str):
            raise InvalidRequest("a row has no queue, and the option queue is not set")
        drafts = [draft_of(row, options) for row in group]
        yield from ((queue, chunk) for chunk in chunks(drafts, options.batch_rows))


def draft_of(row: Row, options: SparkOptions) -> Draft:
    key, body = row[options.key], row["body"]
    if not isinstance(key, str) or not key:
        raise InvalidRequest(f"a row has no {options.key!r}, which must identify it")
    if not isinstance(body, str) or not _is_json(body):
        raise InvalidRequest(f"the body of row {key!r} is not JSON text")
    tags = tuple(str(row[name]) for name in ("tag1", "tag2") if row.get(name) is not None)
    plain = ("kind", "entity_id", "route", "trace", *_NUMBERS)
    given = {name: row[name] for name in plain if row.get(name) is not None}
    return Draft(
        body=body,
        dedup_key=key,
        dedup_window_ms=options.window_ms,
        tags=tags,
        group=row.get("group_key"),  # type: ignore[arg-type]
        attributes=_attributes_of(row.get("attributes"), key),
        **given,  # type: ignore[arg-type]
    )


def _attributes_of(value: object, key: str) -> dict[str, str] | None:
    if isinstance(value, list):  # Arrow returns a map as a list of pairs
        return dict(value)
    if not isinstance(value, str):
        return None
    try:
        return _attributes.decode(value)
    except msgspec.MsgspecError as error:
        raise InvalidRequest(f"the attributes of row {key!r}: {error}") from None


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except msgspec.MsgspecError:
        return False
    return True
