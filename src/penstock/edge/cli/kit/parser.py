"""argparse with two additions: every flag has an environment variable, and help has its own layout.

The variable of a flag is PENSTOCK_<COMMAND>_<FLAG>, or PENSTOCK_<FLAG> if it means the same in all
commands.  Lists are separated by commas.  The help is rendered here because argparse's wording
differs between versions of Python.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

import msgspec

from penstock.domain.duration import duration_text
from penstock.edge.cli.kit.exits import UsageError
from penstock.settings.text import SWITCHES

PREFIX = "PENSTOCK_"
WIDTH = 92
COLUMN = 26
_FLAG = re.compile("--[a-z][a-z0-9_-]*")
# Of values, by the name of the function that parses them.
PLACEHOLDERS = {
    "day": "DAY",
    "duration": "DURATION",
    "instant": "INSTANT",
    "int": "N",
    "size": "SIZE",
}


class HelpLine(msgspec.Struct, frozen=True):
    """One argument, flag or command in the help."""

    left: str
    text: str


class Parser(argparse.ArgumentParser):
    def __init__(self, command: str, environ: Mapping[str, str]) -> None:
        super().__init__(prog=f"penstock {command}", add_help=False, allow_abbrev=False)
        self._command = command
        self._environ = environ
        self._arguments: list[HelpLine] = []
        self._flags: list[HelpLine] = []
        self._usage: list[str] = []
        self._list_defaults: dict[str, list[object]] = {}
        self.env_names: list[str] = []
        self.setting_keys: dict[str, str] = {}  # of settings, by the flags that override them
        self.summary = ""
        self.more = ""
        self.alias = ""
        self.examples: tuple[str, ...] = ()
        self.subcommands: tuple[str, ...] = ()  # the words that may follow the command's name

    def argument(self, name: str, text: str, **options: Any) -> None:
        """Add a positional argument; `nargs` as in argparse."""
        self.add_argument(name.lower(), metavar=name, **options)
        many = options.get("nargs")
        shown = {"?": f"[{name}]", "*": f"[{name}…]", "+": f"{name}…"}.get(str(many), name)
        self._usage.append(shown)
        self._arguments.append(HelpLine(name, text))

    def flag(
        self,
        names: str,
        text: str,
        *,
        value: str = "",
        env: str = "",
        reads_env: bool = True,
        **options: Any,
    ) -> None:
        """Add a flag by its names, separated by spaces; the text need not repeat the default.

        `value` is the placeholder of its value, by default that of its type or choices.  A flag
        with neither is a switch.
        """
        name = next(name for name in names.split() if name.startswith("--"))
        env = env or PREFIX + re.sub("[- ]", "_", f"{self._command}_{name[2:]}".upper())
        value = value or _placeholder(name, options)
        if "default" not in text:
            text += default_text(options.get("default"), options.get("type"))
        if value:
            options["metavar"] = value
        else:
            options["action"] = "store_true"
        if reads_env:
            self.env_names.append(env)
            if self._environ.get(env):
                options |= self._from_env(env, options)
        action = self.add_argument(*names.split(), **options)
        if isinstance(options.get("default"), list):
            # Values of the flag replace those of the variable instead of extending them.
            self._list_defaults[action.dest], action.default = options["default"], []
        shown = ", ".join(names.split()) + (f" {value}" if value else "")
        self._flags.append(HelpLine(shown, f"{text} [{env}]" if env != "-" else text))

    def add_common(self) -> None:
        self.flag("--json", "print JSON, one document per line", env="PENSTOCK_JSON")
        self.add_argument("-h", "--help", action="help")
        self._flags.append(HelpLine("-h, --help", "show this help"))

    def read(self, argv: Sequence[str]) -> argparse.Namespace:
        """Parse the arguments; raises UsageError, or SystemExit after --help."""
        self._check_flags(argv)
        args, extra = self.parse_known_args(argv)
        if extra:
            self.error(f"unexpected argument {extra[0]!r}{self._hint(extra[0], self.subcommands)}")
        for name, value in self._list_defaults.items():
            setattr(args, name, getattr(args, name) or value)
        args.setting_keys = self.setting_keys
        args.argv = list(argv)
        return args

    def _check_flags(self, argv: Sequence[str]) -> None:
        """Reject an unknown flag before argparse complains about its value."""
        for word in argv:
            name = word.partition("=")[0]
            if word == "--":
                return
            if _FLAG.fullmatch(name) and name not in self._option_string_actions:
                hint = self._hint(name, self._option_string_actions)
                self.error(f"unknown flag {name}{hint}")

    def _hint(self, word: str, known: Iterable[str]) -> str:
        close = get_close_matches(word, list(known), n=1)
        return f"; did you mean {close[0]!r}?" if close else ""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}; see {self.prog} --help")

    def format_help(self) -> str:
        usage = " ".join((self.prog, *self._usage, "[flags]"))
        summary = self.summary[0].upper() + self.summary[1:] + "."
        parts = [f"Usage: {usage}", textwrap.fill(summary, WIDTH)]
        if self.more:
            parts.append(textwrap.fill(self.more, WIDTH))
        if self.alias:
            parts.append(f"Alias: penstock {self.alias}")
        if self._arguments:
            parts.append(block("Arguments:", self._arguments))
        parts.append(block("Flags [and their environment variables]:", self._flags))
        if self.examples:
            parts.append("Examples:\n" + "\n".join(f"  {line}" for line in self.examples))
        return "\n\n".join(parts) + "\n"

    def _from_env(self, env: str, options: dict[str, Any]) -> dict[str, Any]:
        text = self._environ[env]
        try:
            if options.get("action") == "store_true":
                return {"default": SWITCHES[text.strip().lower()]}
            parse: Callable[[str], object] = options.get("type", str)
            is_list = options.get("action") == "append"
            parts = [part.strip() for part in text.split(",")] if is_list else [text]
            values = [parse(part) for part in parts if part]
        except (ValueError, KeyError, argparse.ArgumentTypeError) as error:
            raise UsageError(f"{env} is {text!r}: {error}") from None
        allowed = options.get("choices", values)
        if not all(value in allowed for value in values):
            raise UsageError(f"{env} is {text!r}; allowed: {', '.join(allowed)}")
        return {"default": values if is_list else values[0], "required": False}


def _placeholder(name: str, options: Mapping[str, Any]) -> str:
    of_type = PLACEHOLDERS.get(getattr(options.get("type"), "__name__", ""), "")
    return of_type or (name.rpartition("-")[2].upper() if "choices" in options else "")


def default_text(default: object, kind: object) -> str:
    """The end of the help text of a flag that has a default."""
    if isinstance(default, bool) or not isinstance(default, int | str) or default == "":
        return ""
    is_duration = isinstance(default, int) and getattr(kind, "__name__", "") == "duration"
    return f"; default {duration_text(int(default)) if is_duration else default}"


def block(title: str, lines: list[HelpLine]) -> str:
    """A title with two columns below it."""
    shown = [title]
    for line in lines:
        texts = textwrap.wrap(line.text, WIDTH - COLUMN, break_on_hyphens=False) or [""]
        left = f"  {line.left}"
        if len(left) > COLUMN - 2:
            shown.append(left)
            left = ""
        shown.append(f"{left:<{COLUMN}}{texts[0]}".rstrip())
        shown += [" " * COLUMN + text for text in texts[1:]]
    return "\n".join(shown)
