"""`penstock settings`"""

from __future__ import annotations

from argparse import Namespace

from penstock.edge.cli.kit import exits
from penstock.edge.cli.kit.flags import loaded, store_flags
from penstock.edge.cli.kit.output import Output
from penstock.edge.cli.kit.parser import Parser
from penstock.edge.cli.registry import Command
from penstock.settings.catalogue import catalogue
from penstock.settings.describe import toml_template
from penstock.settings.read import told
from penstock.settings.shown import shown_value


def configure(parser: Parser) -> None:
    parser.flag("--toml", text="print a config file with all defaults, commented out")
    store_flags(parser)


def run(args: Namespace, out: Output) -> int:
    if args.toml:
        out.text("toml", toml_template())
        return exits.OK
    found = loaded(args)
    rows = [
        (setting, shown_value(found.settings, setting), found.sources[setting.key])
        for setting in catalogue().values()
    ]
    if out.json:
        for setting, value, source in rows:
            facts = {"place": source.place, "source": str(source), "env": setting.env}
            out.record({"key": setting.key, "value": value, **facts})
    else:
        out.table(
            ("key", "value", "from", "environment"),
            [(s.key, told(s, value), str(source), s.env) for s, value, source in rows],
        )
    return exits.OK


COMMANDS = {
    "settings": Command(
        run,
        configure,
        more="Flags win over the environment, the environment over the config file, and that over "
        "the defaults. A mistake in any of them ends the command with code 1.",
        examples=(
            "penstock settings",
            "penstock settings --toml > penstock.toml",
            "PENSTOCK_SERVER_PORT=8000 penstock settings --json",
        ),
    )
}
