"""`penstock signal`, and the steps in what `show` prints."""

from __future__ import annotations

from pathlib import Path

from penstock import Penstock, step, wait_event
from tests.client.jobs.driver import JobDriver
from tests.clocks import ManualClock
from tests.edge.api import Api, a_name, ok
from tests.edge.cli.conftest import Run


def test_a_signal_continues_jobs_and_show_lists_their_steps(
    cli: Run, api: Api, clock: ManualClock
) -> None:
    queue, name = api.make_queue(), a_name("approved")
    message_id = api.send(queue)
    lease = f"/v1/leases/{api.claim_one(queue)['receipt']}"
    ok(api.call("POST", f"{lease}/steps", {"name": "charge", "outcome": {"payment": 17}}))
    ok(api.call("POST", f"{lease}/waits", {"signal": name}))
    ok(api.call("POST", f"{lease}/snooze", {"delay_ms": 60_000, "signal": name}))
    shown = cli("messages", "show", message_id).out
    assert "charge" in shown
    assert '{"payment":17}' in shown
    assert "waits for" in shown

    sent = cli("signal", name, '{"by": "ada"}')
    again = cli("signal", name, "no")

    assert sent == (0, f"{name} ended 1 waits\n", "")
    assert (again.code, again.out) == (0, f"{name} ended 0 waits\n")
    assert "is still kept" in again.err
    record = cli("messages", "show", message_id, "--json").record
    assert [one["name"] for one in record["steps"]] == ["charge", name]
    assert record["steps"][1]["outcome"] == {"body": {"by": "ada"}}
    assert record["waits"] == []
    assert api.message(message_id)["state"] == "ready"


def test_a_signal_reaches_the_jobs_of_a_store_without_a_server(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'jobs.db'}"
    with Penstock(url) as app:

        @app.job(queue="orders")
        async def order() -> None:
            await step("charge", lambda: 5)
            assert await wait_event("approved") is None

        sent = order.enqueue()
        driver = JobDriver(app, app.clock, "orders")
        driver.run_due()
        assert "charge" in run("jobs", "show", sent.id, "--store", url).out

        record = run("signal", "approved", "--keep", "1h", "--store", url, "--json").record

        assert (record["ended_waits"], record["is_duplicate"]) == (1, False)
        assert [act.verb for act in driver.run_due()] == ["complete"]
