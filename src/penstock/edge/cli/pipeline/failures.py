"""What an error that ends a pipeline command means: one line with a stable code.

Spark may be missing: its errors are looked for only once something has imported it.
"""

from __future__ import annotations

import sys
import traceback
from argparse import Namespace
from collections.abc import Callable
from typing import Any

import msgspec

from penstock.client.errors import Unreachable
from penstock.domain.errors import PenstockError
from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.command import Part, StoreCommand, flag
from penstock.edge.cli.kit.exits import UsageError
from penstock.edge.cli.kit.output import Output
from penstock.pipeline.spark.stopped import PipelineStopped

# `penstock` itself reports these in one line.
_REPORTED = (PenstockError, Unreachable, UsageError, OSError)


class LocalCommand(StoreCommand):
    """Reads the lake or the tables in this process, without Spark."""

    def __init__(self, run: Callable[..., int | None], *parts: Part, **help_texts: Any) -> None:
        details = flag("--verbose", "show the details of an error")
        super().__init__(run, *parts, details, **help_texts)

    def _call(self, args: Namespace, out: Output) -> int | None:
        return report_failures(args, lambda: super(LocalCommand, self)._call(args, out))


class Failure(msgspec.Struct, frozen=True):
    code: str
    text: str


def explain_failure(error: BaseException) -> Failure:
    if isinstance(error, PipelineStopped | PenstockError | Unreachable | UsageError):
        return Failure(error.code, str(error))
    if isinstance(error, KeyboardInterrupt):
        return Failure("interrupted", "the run was interrupted")
    if isinstance(error, OSError):
        return Failure("system", exits.system_text(error))
    if "pyspark" in sys.modules:
        from penstock.pipeline.spark.errors import SPARK_ERRORS, explain

        if isinstance(error, SPARK_ERRORS):
            found = explain(error)
            return Failure(found.code, found.text)
    first_line = next(iter(str(error).strip().splitlines()), "")
    return Failure("internal", ": ".join(filter(None, (type(error).__name__, first_line))))


def report_failures(args: Namespace, run: Callable[[], int | None]) -> int | None:
    """Run a command; report its error as one line, with the traceback after --verbose."""
    try:
        return run()
    except _REPORTED:
        raise
    except PipelineStopped as stopped:
        exits.report(stopped, stopped.code)
    except Exception as error:
        found = explain_failure(error)
        if args.verbose:
            traceback.print_exception(error)
        hint = "" if args.verbose else "; --verbose shows the details"
        exits.report(f"{found.text}{hint}", found.code)
    return exits.REFUSED
