"""The tables that the pipeline computes, for a server and for the command line."""

from __future__ import annotations

from penstock.outbound.dice import SystemDice
from penstock.outbound.table_files import TableFiles
from penstock.services.lake import Tables


def open_tables(place: str) -> Tables:
    """`place`: a folder, or the URL of one in an object store."""
    dice = SystemDice()
    return Tables(TableFiles(place, lambda: dice.digits(8)), folder=place)
