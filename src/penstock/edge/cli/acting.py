"""One act on each of several messages or jobs: all are tried, and each refusal is reported."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from penstock.client.answers import Acted
from penstock.domain.errors import PenstockError
from penstock.edge.cli import exits
from penstock.edge.cli.output import Output


def act_on_each(ids: Sequence[str], act: Callable[[str], Acted], out: Output) -> int:
    """Returns the exit code: that of the last refusal, if there was one."""
    code = exits.OK
    for one in ids:
        try:
            acted = act(one)
        except PenstockError as error:
            exits.tell(error, error.code)
            code = exits.exit_code(error)
            continue
        if out.json:
            out.record(acted)
        else:
            out.line(f"{acted.id} {acted.state}")
    return code
