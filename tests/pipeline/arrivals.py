"""QueueArrivals for back-tests, as Spark passes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pyarrow as pa

from penstock.pipeline.replays.fleet import QueueArrivals


class Arrival(NamedTuple):
    at: int
    work_ms: int


def arrivals_of(given: Iterable[Arrival]) -> QueueArrivals:
    schema = pa.schema([("at", pa.int64()), ("work_ms", pa.int64())])
    return QueueArrivals.of(pa.Table.from_pylist([one._asdict() for one in given], schema))
