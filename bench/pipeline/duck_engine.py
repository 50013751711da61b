"""The same in DuckDB's SQL, in the two ways it can be done.

With histograms, as Spark does it: counts per bucket, kept in the table, percentiles read off them.
Or its own way: exact percentiles, each grain and dimension from the rows, and nothing kept.
"""

from __future__ import annotations

from pathlib import Path

import duckdb

_DIMENSIONS = ("queue", "kind", "route", "worker")
_GRAINS = {"minute": 60_000, "hour": 3_600_000, "day": 86_400_000}
_COPY = "(FORMAT parquet, COMPRESSION zstd, PARTITION_BY (dt), OVERWRITE_OR_IGNORE)"

_LIFECYCLE = """
SELECT message_no, history_no, id, queue, kind, route, leased_by AS worker, outcome, sent_at,
       finished_at, first_leased_at - sent_at AS wait_ms,
       CASE WHEN outcome = 'done' THEN finished_at - leased_at END AS service_ms,
       finished_at - sent_at AS total_ms, attempts, failures, crashes, size, dt
  FROM read_parquet('{lake}/history/*/*.parquet', hive_partitioning = true)
 WHERE message_no IS NOT NULL AND finished_at >= sent_at
   AND coalesce(first_leased_at >= sent_at, true) AND coalesce(leased_at <= finished_at, true)
"""

_SUMS = """
       count(*) AS finished, count(*) FILTER (outcome = 'done') AS done,
       count(*) FILTER (outcome = 'dead') AS dead,
       count(*) FILTER (outcome = 'cancelled') AS cancelled, sum(attempts) AS attempts,
       sum(failures) AS failures, sum(crashes) AS crashes, sum(size) AS bytes
"""

_EXACT = """
SELECT '{grain}' AS grain, finished_at // {ms} * {ms} AS at, '{dimension}' AS dimension,
       {dimension} AS name, {sums},
       quantile_disc(wait_ms, [0.5, 0.95, 0.99]) AS wait,
       quantile_disc(service_ms, [0.5, 0.95, 0.99]) AS service, dt
  FROM read_parquet('{out}/lifecycle/*/*.parquet', hive_partitioning = true)
 WHERE {dimension} IS NOT NULL
 GROUP BY ALL
"""

_BUCKET = (
    "CASE WHEN {c} <= 0 THEN 0 WHEN {c} > 0 THEN least(floor(log2({c}) * 4)::INT + 1, 127) END"
)

_MINUTES = """
SELECT finished_at // 60000 * 60000 AS at, '{dimension}' AS dimension, {dimension} AS name, {sums},
       histogram({wait}) AS wait_histogram, histogram({service}) AS service_histogram, dt
  FROM read_parquet('{out}/lifecycle/*/*.parquet', hive_partitioning = true)
 WHERE {dimension} IS NOT NULL
 GROUP BY ALL
"""

# Counts of a coarser grain are added up from those of minutes, bucket by bucket.
_ADDED = """
SELECT '{grain}' AS grain, "at" // {ms} * {ms} AS start, dimension, name, sum(finished) AS finished,
       sum(done) AS done, sum(dead) AS dead, sum(cancelled) AS cancelled,
       sum(attempts) AS attempts, sum(failures) AS failures, sum(crashes) AS crashes,
       sum(bytes) AS bytes, dt
  FROM minutes
 GROUP BY ALL
"""

_ADDED_BUCKETS = """
SELECT start, dimension, name, dt, map(list(bucket), list(n)) AS {measure}_histogram
  FROM (SELECT "at" // {ms} * {ms} AS start, dimension, name, dt, e.key AS bucket, sum(e.value) AS n
          FROM (SELECT "at", dimension, name, dt, unnest(map_entries({measure}_histogram)) AS e
                  FROM minutes)
         GROUP BY ALL ORDER BY bucket)
 GROUP BY ALL
"""

# Cumulative counts of a histogram, and the upper bound of the bucket that reaches the share.
_READ_OFF = (
    "2 ** (map_keys({h})[len(list_filter(list_transform(range(1, len(map_keys({h})) + 1), "
    "lambda i: list_sum(map_values({h})[1:i])), "
    "lambda c: c < {share} * list_sum(map_values({h})))) + 1] / 4.0)"
)


class DuckEngine:
    def __init__(self, *, with_histograms: bool) -> None:
        self._with_histograms = with_histograms

    def run(self, lake: Path, out: Path) -> None:
        db = duckdb.connect()
        lifecycle = _LIFECYCLE.format(lake=lake)
        (out / "rollups").mkdir(parents=True, exist_ok=True)
        db.execute(f"COPY ({lifecycle}) TO '{out}/lifecycle' {_COPY}")
        if self._with_histograms:
            self._histograms(db, out)
        else:
            for grain, ms in _GRAINS.items():
                for d in _DIMENSIONS:
                    rows = _EXACT.format(grain=grain, ms=ms, dimension=d, sums=_SUMS, out=out)
                    db.execute(f"COPY ({rows}) TO '{out}/rollups/{grain}-{d}' {_COPY}")
        db.close()

    def _histograms(self, db: duckdb.DuckDBPyConnection, out: Path) -> None:
        buckets = {m: _BUCKET.format(c=f"{m}_ms") for m in ("wait", "service")}
        parts = (_MINUTES.format(dimension=d, sums=_SUMS, out=out, **buckets) for d in _DIMENSIONS)
        db.execute(f"CREATE TABLE minutes AS {' UNION ALL '.join(parts)}")
        for grain, ms in _GRAINS.items():
            sums = _ADDED.format(grain=grain, ms=ms)
            wait = _ADDED_BUCKETS.format(ms=ms, measure="wait")
            service = _ADDED_BUCKETS.format(ms=ms, measure="service")
            if grain == "minute":
                rows = "SELECT 'minute' AS grain, * FROM minutes"
            else:
                using = "USING (start, dimension, name, dt)"
                joined = f"({sums}) LEFT JOIN ({wait}) {using} LEFT JOIN ({service}) {using}"
                rows = f"SELECT * FROM {joined}"
            shares = ", ".join(
                f"{_READ_OFF.format(h=f'{m}_histogram', share=s)} AS {m}_p{int(s * 100)}"
                for m in ("wait", "service")
                for s in (0.5, 0.95, 0.99)
            )
            query = f"SELECT *, {shares} FROM ({rows})"
            db.execute(f"COPY ({query}) TO '{out}/rollups/{grain}' {_COPY}")
