"""Log lines on stderr, for people or for programs.  Those of a running job name it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

import msgspec

from penstock.client.jobs.current import running_job
from penstock.domain.text import sanitize

_JOB = "penstock_job"  # an application's own `extra` must not collide with these
_KIND = "penstock_kind"


def set_up(level: str, form: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else _Text(_TEXT))
    logging.basicConfig(level=level.upper(), handlers=[handler])
    logging.setLogRecordFactory(_naming_the_job(logging.getLogRecordFactory()))


_TEXT = "%(asctime)s %(levelname)-7s %(process)d %(name)s%(of_job)s: %(message)s"


def _naming_the_job(
    make: Callable[..., logging.LogRecord],
) -> Callable[..., logging.LogRecord]:
    """When a record is made, because handlers may write it in another thread."""

    def named(*args: object, **kwargs: object) -> logging.LogRecord:
        record = make(*args, **kwargs)
        job = running_job()
        setattr(record, _JOB, None if job is None else job.id)
        setattr(record, _KIND, None if job is None else job.kind)
        return record

    return named


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        job, kind = getattr(record, _JOB, None), getattr(record, _KIND, None)
        record.of_job = "" if job is None else f" job={job} kind={kind}"
        return super().format(record)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told = {
            "at": int(record.created * 1000),
            "level": record.levelname.lower(),
            "pid": record.process,
            "logger": record.name,
            "text": sanitize(record.getMessage()),
        }
        job = getattr(record, _JOB, None)
        if job is not None:
            told |= {"job": job, "kind": getattr(record, _KIND, None)}
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            told |= fields
        if record.exc_info:
            told["error"] = sanitize(self.formatException(record.exc_info))
        return msgspec.json.encode(told).decode()
