"""Log lines on stderr, as text or JSON; lines that a running job logs name the job."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

import msgspec

from penstock.domain.text import sanitize

_JOB = "penstock_job"  # an application's own `extra` must not collide with these
_KIND = "penstock_kind"


def set_up_logs(level: str, form: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text(_TEXT))
    logging.basicConfig(level=level.upper(), handlers=[handler])


_TEXT = "%(asctime)s %(levelname)-7s %(process)d %(name)s%(of_job)s: %(message)s"


RunningJob = Callable[[], tuple[str, str | None] | None]  # id and kind


def name_jobs(running_job: RunningJob) -> None:
    """Make each record from now on name the job that logged it.

    The job is determined when a record is created, because handlers may write it in another thread.
    """
    make = logging.getLogRecordFactory()

    def make_named(*args: object, **kwargs: object) -> logging.LogRecord:
        record = make(*args, **kwargs)
        job, kind = running_job() or (None, None)
        setattr(record, _JOB, job)
        setattr(record, _KIND, kind)
        return record

    logging.setLogRecordFactory(make_named)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        job, kind = getattr(record, _JOB, None), getattr(record, _KIND, None)
        record.of_job = "" if job is None else f" job={job} kind={kind}"
        return super().format(record)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "at": int(record.created * 1000),
            "level": record.levelname.lower(),
            "pid": record.process,
            "logger": record.name,
            "text": sanitize(record.getMessage()),
        }
        job = getattr(record, _JOB, None)
        if job is not None:
            fields |= {"job": job, "kind": getattr(record, _KIND, None)}
        own = getattr(record, "fields", None)
        if isinstance(own, dict):
            fields |= own
        if record.exc_info:
            fields["error"] = sanitize(self.formatException(record.exc_info))
        return msgspec.json.encode(fields).decode()
