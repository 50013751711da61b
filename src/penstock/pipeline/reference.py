"""The jobs' tables as docs/pipeline.md shows them; a test compares both.

python -m penstock.pipeline.reference docs/pipeline.md
"""

from __future__ import annotations

import sys
from pathlib import Path

from penstock.pipeline.registry import jobs
from penstock.pipeline.schemas import ComputedTable

BEGIN, END = "<!-- generated from the code: begin -->\n", "<!-- generated from the code: end -->\n"


def tables() -> str:
    parts = []
    for job in jobs():
        parts.append(f"### {job.name}\n\n{job.summary[0].upper()}{job.summary[1:]}.\n")
        parts += [_table(output.table) for output in job.outputs]
    return "\n".join(parts)


def with_tables(document: str) -> str:
    """The page with its tables generated from the code."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables()}\n{END}{after}"


def _table(table: ComputedTable) -> str:
    rows = [f"| `{f.name}` | {f.kind.value} | {f.meaning} |" for f in table.fields]
    lines = [
        f"**`{table.name}`**: {table.meaning}.",
        "",
        "| column | type | meaning |",
        "|---|---|---|",
    ]
    return "\n".join([*lines, *rows, ""])


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
