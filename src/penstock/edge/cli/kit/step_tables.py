"""Tables of the durable steps of a message, and of the signals that it waits for."""

from __future__ import annotations

from penstock.api.jobs.steps import MessageSteps
from penstock.edge.cli.kit.output import cut, display
from penstock.edge.cli.kit.view import Table, View

_STEP = View("name:step at outcome", outcome=lambda step: cut(display(step.outcome)))
_WAIT = View("signal:waits_for step until_at:until")


def step_tables(found: MessageSteps) -> list[Table]:
    """Only those that have rows."""
    tables = [_STEP.table(found.steps), _WAIT.table(found.waits)]
    return [table for table in tables if table.rows]
