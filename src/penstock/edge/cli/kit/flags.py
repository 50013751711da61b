"""Flags that several commands share, and parsers of their values."""

from __future__ import annotations

import argparse
import os
from argparse import Namespace
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.domain.duration import duration_ms
from penstock.edge.cli.kit.parser import PREFIX, Parser
from penstock.settings import Flag, Loaded, load
from penstock.settings.catalogue import catalogue
from penstock.settings.text import SWITCHES, size_bytes

if TYPE_CHECKING:
    from penstock.client.remote.server import Remote

DEFAULT_SERVER = "http://127.0.0.1:7654"
NONE = "none"  # unsets a value

T = TypeVar("T")


def server_flags(parser: Parser) -> None:
    """Flags of commands that call a running server."""
    parser.flag(
        "--server",
        "URL of the server",
        value="URL",
        env="PENSTOCK_SERVER",
        default=DEFAULT_SERVER,
    )
    parser.flag("--key", "API key, if the server requires one", value="SECRET", env="PENSTOCK_KEY")
    parser.flag(
        "--timeout",
        "how long to wait for an answer",
        env="PENSTOCK_TIMEOUT",
        type=timeout,
        default=30_000,
    )


def setting_flag(name: str, key: str, *, value: str, text: str) -> Callable[[Parser], None]:
    """A flag that overrides a setting, which reads the environment variable itself."""

    def add(parser: Parser) -> None:
        parser.flag(name, text, value=value, env=catalogue()[key].env, reads_env=False)
        parser.setting_keys[name] = key

    return add


def store_flags(parser: Parser) -> None:
    """Flags of commands that open the store."""
    setting_flag("--data", "data", value="FOLDER", text="data folder; default ./data")(parser)
    setting_flag(
        "--store",
        "store.url",
        value="URL",
        text="sqlite:///path, postgresql://… or mysql://…; default: penstock.db in the data folder",
    )(parser)
    parser.flag(
        "--config",
        "config file (TOML); default ./penstock.toml if there is one",
        value="FILE",
        env="PENSTOCK_CONFIG",
        reads_env=False,
    )
    parser.flag(
        "--set",
        "any setting, by the key that `penstock settings` lists; may be repeated",
        value="KEY=VALUE",
        env="-",
        reads_env=False,
        action="append",
        type=pair,
        default=[],
    )


def remote(args: Namespace) -> Remote:
    from penstock.client.remote.server import Remote

    return Remote(args.server, key=args.key, timeout=args.timeout / 1000)


def load_settings(args: Namespace) -> Loaded:
    """Load the settings of a command with `store_flags`."""
    flags: dict[str, Flag] = {}
    for name, key in args.setting_keys.items():
        given = getattr(args, name.removeprefix("--"))
        if given is not None:
            flags[key] = Flag(name, given)
    flags.update((key, Flag("--set", value)) for key, value in args.set)
    return load(config=args.config, flags=flags, other_env=_other_env())


def _other_env() -> frozenset[str]:
    # Variables of flags, such as PENSTOCK_QUEUES_CREATE_LEASE, look like those of settings.
    sections = ("ARCHIVE_", "HISTORY_", "PIPELINE_", "QUEUES_", "SCALING_", "SQL_", "WORKERS_")
    if not any(name.startswith(tuple(PREFIX + one for one in sections)) for name in os.environ):
        return frozenset()
    from penstock.edge.cli.registry import env_names

    return env_names()


def duration(text: str) -> int:
    return _parse(duration_ms, text)


def timeout(text: str) -> int:
    ms = duration(text)
    if ms <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is too short; use a duration such as 30s")
    return ms


timeout.__name__ = "duration"  # for the help


def size(text: str) -> int:
    return _parse(size_bytes, text)


def pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def or_none(parse: Any) -> Any:
    def convert(text: str) -> object:
        return NONE if text == NONE else parse(text)

    convert.__name__ = f"{getattr(parse, '__name__', 'value')} or none"
    return convert


def number(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        given = int(text)
        if not least <= given <= most:
            raise argparse.ArgumentTypeError(f"{given} is not between {least} and {most}")
        return given

    parse.__name__ = "int"  # for messages of argparse, and the help
    return parse


def switch(text: str) -> bool:
    try:
        return SWITCHES[text.lower()]
    except KeyError:
        raise argparse.ArgumentTypeError(f"{text!r} is not yes or no") from None


def instant(text: str) -> datetime:
    """Parse ISO 8601; without an offset it is UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        form = "2031-01-31, 2031-01-31T08:30 or 2031-01-31T08:30:00+01:00"
        raise argparse.ArgumentTypeError(f"{text!r} is not an instant such as {form}") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _parse(parse: Callable[[str], T], text: str) -> T:
    # argparse shows the text of this error only.
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
