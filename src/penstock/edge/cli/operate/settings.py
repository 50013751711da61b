"""`penstock settings` and `version`"""

from __future__ import annotations

import platform
from argparse import Namespace

from penstock.edge.cli.kit.command import Command, flag
from penstock.edge.cli.kit.flags import load_settings, store_flags
from penstock.edge.cli.kit.output import Output
from penstock.settings.catalogue import catalogue
from penstock.settings.text import masked_value, render, toml_template
from penstock.version import __version__


def _settings(args: Namespace, out: Output) -> None:
    if args.toml:
        return out.text("toml", toml_template())
    loaded = load_settings(args)
    rows = [
        (setting, masked_value(loaded.settings, setting), loaded.origins[setting.key])
        for setting in catalogue().values()
    ]
    if out.json:
        for setting, value, origin in rows:
            facts = {"place": origin.place, "source": str(origin), "env": setting.env}
            out.record({"key": setting.key, "value": value, **facts})
    else:
        out.table(
            ("key", "value", "from", "environment"),
            [(s.key, render(s, value), str(origin), s.env) for s, value, origin in rows],
        )
    return None


def _version(args: Namespace, out: Output) -> None:
    import apsw

    facts = {
        "penstock": __version__,
        "python": platform.python_version(),
        "sqlite": apsw.sqlite_lib_version(),
    }
    text = f"penstock {__version__} (Python {facts['python']}, SQLite {facts['sqlite']})"
    out.result(facts, text)


COMMANDS = {
    "settings": Command(
        _settings,
        flag("--toml", "print a config file with all defaults, commented out"),
        store_flags,
        more="Flags override the environment, the environment overrides the config file, and that "
        "overrides the defaults. If any of them is invalid, the command exits with code 1.",
        examples=(
            "penstock settings",
            "penstock settings --toml > penstock.toml",
            "PENSTOCK_SERVER_PORT=8000 penstock settings --json",
        ),
    ),
    "version": Command(_version, examples=("penstock version --json",)),
}
