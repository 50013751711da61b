"""The jobs whose findings keep a day from being loaded, and how each one tells."""

from __future__ import annotations

from penstock.pipeline.jobs import quality
from penstock.pipeline.runner import Gate

GATES: dict[str, Gate] = {quality.JOB.name: quality.refused}
