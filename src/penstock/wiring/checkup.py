"""Checks of the machine, the secret file and the store that need no running server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from penstock.domain.errors import InvalidRequest
from penstock.domain.optional_parts import not_installed
from penstock.domain.store.finding import Finding, fail, ok, warn
from penstock.outbound import machine
from penstock.outbound.clock import SystemClock, wall_ms
from penstock.outbound.secret_file import read_secret_file
from penstock.settings import Settings
from penstock.store.maintenance import sqlite_checks


def examine(settings: Settings) -> Iterator[Finding]:
    clock = SystemClock().now
    path = settings.sqlite_path
    folder = Path(settings.data) if path is None else path.parent
    yield from machine.examine(folder, clock=clock)
    if settings.auth.secret_file is not None:
        yield _secret_file(Path(settings.auth.secret_file))
    if path is not None:
        yield from sqlite_checks.examine(path, now=wall_ms())
        return
    try:
        from penstock.store.maintenance import postgres_checks
    except ImportError:
        yield fail("store", not_installed("PostgreSQL support", "postgres"))
        return
    yield from postgres_checks.examine(settings.store_url, clock=clock)


def _secret_file(path: Path) -> Finding:
    try:
        read_secret_file(str(path))
        is_wide = path.stat().st_mode & 0o077
    except (InvalidRequest, OSError) as error:
        return fail("secret file", str(error))
    if is_wide:
        return warn("secret file", f"other users can read {path}: chmod 600 {path}")
    return ok("secret file", f"{path} is readable for its owner only")
