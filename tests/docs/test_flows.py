"""The programs of the page about flows run."""

from __future__ import annotations

from tests.docs.snippets import read_blocks
from tests.docs.test_jobs import run

WORK = """
split_flow = app.flow("split")
split_flow.add(split, ["a", "bc"])
split_flow.enqueue()
app.run_worker(burst=True)
print("total:", total.result("30s"), f.status().state, f.status().skipped)
print("sums:", sums["merge"].result("30s"))
print("split:", split_flow.status().total, split_flow.status().state)
print("batch:", batch.status().done, batch.status().state)
app.close()
"""


def test_the_flows_of_the_page_run(tmp_path):
    shown = run(read_blocks("docs/flows.md", "flows") + WORK, tmp_path)

    assert "total: 16 done 1" in shown
    assert "sums: 15" in shown
    assert "split: 4 done" in shown
    assert "batch: 3 done" in shown
