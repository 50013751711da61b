"""Generate docs/cli.md and the table in docs/configuration.md; tests compare them with the code.

python -m penstock.edge.cli.reference cli > docs/cli.md
python -m penstock.edge.cli.reference configuration docs/configuration.md
"""

from __future__ import annotations

import sys
from pathlib import Path

from penstock.edge.cli.kit.aliases import ALIASES
from penstock.edge.cli.main import overview
from penstock.edge.cli.registry import ENTRIES, load, parser_of
from penstock.settings.text import markdown_table

BEGIN, END = "<!-- generated from the code: begin -->\n", "<!-- generated from the code: end -->\n"

_INTRODUCTION = """\
# The command line

One program, `penstock` (also `python -m penstock`), starts a server and talks to one. Commands
about messages and queues ask a running server (`--server`, `--key`); commands about the store open
it themselves (`--data`, `--store`). `jobs`, `result` and most of `recurring` do either: they ask a
server, or open the store that `--store` names. This page is generated from `--help`.

- With `--json` every command prints JSON, one document per line, and nothing else on standard
  output.
- Every flag has an environment variable; a flag takes precedence. Lists in variables are
  separated by commas; switches are `true` or `false`.
- Durations are written `500ms`, `30s`, `5m`, `12h`, `7d` or `1h30m`; sizes `64KiB` or `1MiB`;
  instants as ISO 8601, in UTC unless they have an offset.
- Errors are one line on standard error, `penstock: text (code)`, with the codes of the
  [HTTP API](http-api.md).
"""


def page() -> str:
    """docs/cli.md"""
    parts = [_INTRODUCTION, _aliases(), f"```text\n{overview()}```\n"]
    for name in ENTRIES:
        help_text = parser_of(name, load(name)).format_help()
        parts.append(f"## penstock {name}\n\n```text\n{help_text}```\n")
    return "\n".join(parts)


def with_table(document: str) -> str:
    """docs/configuration.md with its generated table."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{markdown_table()}\n{END}{after}"


def _aliases() -> str:
    pairs = (f"`{alias}` for `{name}`" for name, alias in ALIASES.items())
    return f"Aliases: {', '.join(pairs)}.\n"


def main(words: list[str]) -> int:
    match words:
        case ["cli"]:
            print(page(), end="")
        case ["configuration", path]:
            file = Path(path)
            file.write_text(with_table(file.read_text(encoding="utf-8")), encoding="utf-8")
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
