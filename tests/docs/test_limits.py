"""The page about limits: its program is run."""

from __future__ import annotations

from pathlib import Path

from tests.docs.snippets import marked
from tests.docs.test_jobs import run

LOOK = """
app.job_source()
for name in app.queues:
    settings = app.backend.broker.queues.get(name).result().queue.settings
    print(name, settings.max_leased, settings.max_leased_per_group, settings.rate,
          settings.rate_per_group, settings.is_fair, settings.weights)
app.close()
"""


def test_the_queues_of_the_page_have_the_limits_it_shows(tmp_path: Path) -> None:
    shown = run(marked("docs/limits.md", "limits") + LOOK, tmp_path)

    assert shown.splitlines() == [
        "api None None Rate(limit=100, per_ms=60000, burst=10) None False {}",
        "calls None 2 None None False {}",
        "hooks None None None Rate(limit=10, per_ms=1000, burst=20) False {}",
        "imports None None None None True {'acme': 3}",
        "reports 20 None None None False {}",
    ]
