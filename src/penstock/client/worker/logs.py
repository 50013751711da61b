"""Log lines on stderr, for people or for programs."""

from __future__ import annotations

import logging
import sys

import msgspec


def set_up(level: str, form: str) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Json() if form == "json" else logging.Formatter(_TEXT))
    logging.basicConfig(level=level.upper(), handlers=[handler])


_TEXT = "%(asctime)s %(levelname)-7s %(process)d %(name)s: %(message)s"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        told = {
            "at": int(record.created * 1000),
            "level": record.levelname.lower(),
            "pid": record.process,
            "logger": record.name,
            "text": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return msgspec.json.encode(told).decode()
