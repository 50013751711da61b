"""`manage.py penstock_worker`: `penstock worker` for the tasks of this project."""

from __future__ import annotations

import os
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from penstock.django.backends import penstock_backends
from penstock.edge.cli.main import main

# Flags of `penstock worker`, which checks their values and describes them.
_VALUES = (
    "--queues", "--slots", "--processes", "--prefetch", "--lease", "--drain-for", "--max-jobs",
    "--max-memory", "--label", "--log-level", "--log-format",
)  # fmt: skip
_SWITCHES = ("--burst", "--reload")


class WorkerCommand(BaseCommand):
    help = "Run tasks. The flags are those of `penstock worker`."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--backend", default="default", help="the entry of TASKS")
        for name in _VALUES:
            parser.add_argument(name)
        for name in _SWITCHES:
            parser.add_argument(name, action="store_true")

    def handle(self, *_: Any, **given: Any) -> None:
        alias = given["backend"]
        if alias not in penstock_backends():
            raise CommandError(f"TASKS has no entry {alias!r} with PenstockBackend")
        # The worker's processes import the project themselves.
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", settings.SETTINGS_MODULE)
        words = ["worker", f"penstock.django.worker:{alias}"]
        for name in (*_VALUES, *_SWITCHES):
            value = given[name.removeprefix("--").replace("-", "_")]
            if value is True:
                words.append(name)
            elif value:
                words += [name, str(value)]
        if code := main(words):
            raise SystemExit(code)


Command = WorkerCommand  # the name that Django looks for
