"""SQL on the lake, and the pipeline's tables.  The server needs no Spark for either."""

from __future__ import annotations

from functools import partial

from penstock.api import lake
from penstock.api.lake import Days, InsightRows, Insights, SqlRows, SqlStatement
from penstock.operations.call import Call, Handlers
from penstock.ports.unit_of_work import Steps, ThreadedStep
from penstock.services.lake import Tables
from penstock.services.sql import SqlService

_FIRST_DAY, _LAST_DAY = "0000-01-01", "9999-12-31"


class TableOperations:
    def __init__(self, service: Tables) -> None:
        self._tables = service

    def handlers(self) -> Handlers:
        return {lake.LIST_TABLES: self.list, lake.GET_TABLE: self.get}

    def list(self, call: Call[None, None]) -> Steps[Insights]:
        readiness = yield from ThreadedStep(self._tables.readiness)
        found = yield from ThreadedStep(self._tables.tables)
        return Insights(readiness=readiness, folder=self._tables.folder, tables=found)

    def get(self, call: Call[None, Days]) -> Steps[InsightRows]:
        read = partial(
            self._tables.rows,
            call.path["table"],
            from_day=_FIRST_DAY if call.query.from_day is None else call.query.from_day,
            to_day=_LAST_DAY if call.query.to_day is None else call.query.to_day,
            limit=call.query.limit,
        )
        return InsightRows.copy_of((yield from ThreadedStep(read)))


class SqlOperations:
    def __init__(self, service: SqlService) -> None:
        self._sql = service

    def handlers(self) -> Handlers:
        return {lake.RUN_SQL: self.run}

    def run(self, call: Call[SqlStatement, None]) -> Steps[SqlRows]:
        run = partial(self._sql.run, call.body.sql, rows=call.body.limit)
        return SqlRows.copy_of((yield from ThreadedStep(run)))
