"""Jobs whose findings can stop a day, and the functions that return the stopped days."""

from __future__ import annotations

from penstock.pipeline.jobs import quality
from penstock.pipeline.runner import Gate

GATES: dict[str, Gate] = {quality.JOB.name: quality.refused_days}
