"""The programs of the page about flows run."""

from __future__ import annotations

import json

from tests.docs.snippets import read_blocks, run_script
from tests.docs.test_jobs import run
from tests.edge.process import ServerProcess

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


def test_the_flows_of_the_page_run(tmp_path, store_url):
    page = read_blocks("docs/flows.md", "flows").replace("sqlite:///jobs.db", store_url)

    shown = run(page + WORK, tmp_path)

    assert "total: 16 done 1" in shown
    assert "sums: 15" in shown
    assert "split: 4 done" in shown
    assert "batch: 3 done" in shown


def test_the_request_of_the_page_creates_a_flow(make_process):
    server: ServerProcess = make_process()
    made = "penstock queues create reports\npenstock queues create mail\n"

    shown = run_script(server, made + read_blocks("docs/flows.md", "flows over http"))

    flow = json.loads(shown.splitlines()[-1])["flow"]
    assert (flow["name"], flow["total"], flow["state"]) == ("nightly", 3, "running")
