"""SQL on the lake of the settings: for a server, and for `penstock sql`."""

from __future__ import annotations

from penstock.domain.lake.sql import SqlLimits
from penstock.outbound.lake_sql.runner import SqlProcesses
from penstock.services.sql import SqlService
from penstock.settings import Settings


def sql_of_server(settings: Settings) -> SqlService:
    return _service(
        settings,
        settings.insights_folder,
        result_bytes=settings.limits.max_answer_bytes,
        max_running=settings.sql.max_running,
    )


def sql_of_command(settings: Settings, *, tables: str) -> SqlService:
    """`tables`: folder of the computed tables."""
    return _service(settings, tables, result_bytes=settings.sql.max_memory_bytes, max_running=1)


def _service(settings: Settings, tables: str, *, result_bytes: int, max_running: int) -> SqlService:
    limits = SqlLimits(
        rows=settings.sql.max_rows,
        bytes=result_bytes,
        memory_bytes=settings.sql.max_memory_bytes,
        timeout_ms=settings.sql.timeout_ms,
    )
    runner = SqlProcesses(settings.lake_folder, tables)
    return SqlService(runner, limits, max_running=max_running)
