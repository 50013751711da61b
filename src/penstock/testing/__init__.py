"""Test support for applications: a manual clock, and jobs that run immediately.

    def test_a_welcome_is_sent(penstock_kit):
        kit = penstock_kit(app)
        sign_up("ada@example.org")
        kit.assert_enqueued(send_mail, {"to": "ada@example.org"})
        kit.run()

Nothing is faked: jobs go through the real serialiser into a real store, and are claimed, retried
and buried as in production.  Only the clock is manual.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.testing.clock import ManualClock as ManualClock
    from penstock.testing.kit import Kit as Kit
    from penstock.testing.runs import Outcome as Outcome
    from penstock.testing.runs import Run as Run
    from penstock.testing.views import JobView as JobView

# pytest loads the plugin in every test run, with or without jobs: loading must cost nothing.
_HOMES = {
    "Kit": "kit",
    "ManualClock": "clock",
    "Run": "runs",
    "Outcome": "runs",
    "JobView": "views",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
