"""The flags of a queue's limits and its fair share."""

from __future__ import annotations

import argparse
from typing import Any

from penstock.edge.cli.kit.flags import duration, or_none, switch
from penstock.edge.cli.kit.parser import Parser

RATE_FORM = "LIMIT/TIME or LIMIT/TIME,BURST, as in 10/1s or 600/1m,50"


def limit_flags(parser: Parser) -> None:
    parser.flag("--max-leased", value="N", text="leased at the same time; none", type=or_none(int))
    parser.flag(
        "--max-leased-per-group", value="N", text="the same for each group; none", type=or_none(int)
    )
    parser.flag("--rate", value="RATE", text=f"of claims: {RATE_FORM}; none", type=or_none(_rate))
    parser.flag(
        "--rate-per-group", value="RATE", text="the same for each group; none", type=or_none(_rate)
    )
    parser.flag(
        "--fair",
        value="YES/NO",
        text="groups share the queue, whoever sent how much; no",
        type=switch,
    )
    parser.flag(
        "--weight",
        value="GROUP=N",
        text="a group's share of a fair queue, may be repeated; none takes all away",
        action="append",
        type=or_none(_weight),
    )


def _rate(text: str) -> dict[str, Any]:
    pace, _, burst = text.partition(",")
    limit, sign, time = pace.partition("/")
    try:
        if not sign:
            raise ValueError(text)
        rate = {"limit": int(limit), "per_ms": duration(time)}
        return rate | ({"burst": int(burst)} if burst else {})
    except (ValueError, argparse.ArgumentTypeError):
        raise argparse.ArgumentTypeError(f"{text!r} is not {RATE_FORM}") from None


def _weight(text: str) -> tuple[str, int]:
    group, sign, number = text.rpartition("=")
    if not sign or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not GROUP=N")
    return group, int(number)
