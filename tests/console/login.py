"""Logging in with a key."""

from __future__ import annotations

from tests.console.conftest import OpenConsole
from tests.console.driver import Console, expect


def log_in(open_console: OpenConsole, url: str, key: str) -> Console:
    console = open_console(url)
    console.open("/console/login")
    console.log_in(key)
    expect(console.page.get_by_role("button", name="Log out")).to_be_visible()
    expect(console.heading).not_to_have_text("Log in")
    if any("401" in line for line in console.complaints):
        console.forgive("401")  # before the login
    return console
