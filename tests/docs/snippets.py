"""Snippets of the documents, to be run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def marked(document: str, mark: str) -> str:
    """All blocks that stand under `<!-- mark -->`, as one script."""
    text = (ROOT / document).read_text(encoding="utf-8")
    blocks = re.findall(rf"<!-- {mark} -->\n```\w*\n(.*?)```", text, re.DOTALL)
    return "\n".join(blocks)
