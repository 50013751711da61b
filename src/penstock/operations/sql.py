"""SQL on the lake and the computed tables.  Statements run in processes of their own."""

from __future__ import annotations

from functools import partial

from penstock.api import sql
from penstock.api.sql import SqlRows, SqlStatement
from penstock.operations.call import Call, Handlers
from penstock.ports.unit_of_work import Steps, ThreadedStep
from penstock.services.sql import SqlService


class SqlOperations:
    def __init__(self, service: SqlService) -> None:
        self._sql = service

    def handlers(self) -> Handlers:
        return {sql.RUN: self.run}

    def run(self, call: Call[SqlStatement, None]) -> Steps[SqlRows]:
        run = partial(self._sql.run, call.body.sql, rows=call.body.limit)
        return SqlRows.copy_of((yield from ThreadedStep(run)))
