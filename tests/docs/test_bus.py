"""The examples of the pages about notifications and the bus run unchanged."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from penstock.domain.bus import topic
from penstock.domain.message import notification
from tests.docs.snippets import ROOT, read_blocks

WORK = """
from tests.client.bus.driver import BusDriver
from tests.clocks import NOON, ManualClock

BusDriver(app, app.clock).round()
"""


def run(script: str, folder: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_page_about_notifications_runs(tmp_path: Path) -> None:
    script = read_blocks("docs/notifications.md", "notifications")
    now = 'billing.record(InvoiceDue(1), tags=("a", "t"), kind="invoice.due", user_token="u")\n'

    lines = run(script + now + WORK, tmp_path)

    assert lines[0] == "waiting 2031-01-01 00:00:00+00:00 {'invoice': 7}"
    assert lines[-1].startswith("due 1 ('a', 't') ")
    assert lines[-1].endswith(" u")


def test_the_page_about_the_bus_runs(tmp_path: Path) -> None:
    lines = run(read_blocks("docs/bus.md", "bus") + WORK, tmp_path)

    assert lines[0] == "2"
    handled = sorted(lines[1:])
    assert "mail 7" in handled
    assert "mail 9" in handled
    assert "audit {'order': 7} order.placed orders" in handled
    # One of the two with a dedup key is there, and the plain one.
    assert handled.count("audit {'order': 8} order.paid orders") == 2


def test_the_pages_name_the_attributes_and_limits_of_the_code() -> None:
    notifications = (ROOT / "docs/notifications.md").read_text(encoding="utf-8")
    bus = (ROOT / "docs/bus.md").read_text(encoding="utf-8")

    assert set(re.findall(r"^\| `(notification\.\w+)` \|", notifications, re.MULTILINE)) == set(
        notification.OWN
    )
    assert all(f"`{name}`" in bus for name in topic.OWN)
    assert f"{topic.MAX_SUBSCRIPTIONS:,} subscriptions" in bus
    assert f"{topic.MAX_FAN_OUT:,} messages" in bus
