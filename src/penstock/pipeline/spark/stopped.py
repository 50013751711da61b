"""The error that ends a pipeline command with one line and a stable code."""

from __future__ import annotations


class PipelineStopped(Exception):
    """The command cannot start or continue; nothing is damaged.  `code` is stable."""

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.code = code
