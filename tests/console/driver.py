"""A driver for the console: short calls for the actions of a user."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

__all__ = ["Console", "expect"]


class Console:
    """One page of one browser.  `complaints` are errors of scripts, loading and the policy.

    Errors that a test provokes are also there; `forgive` and `overlook` remove them.
    """

    def __init__(self, page: Page, folder: Path) -> None:
        self.page = page
        self.complaints: list[str] = []
        self._forgiven: list[str] = []
        self._folder = folder
        page.on("pageerror", self._on_error)
        page.on("console", self._on_console)

    def stop_listening(self) -> None:
        """The page may be used by another test."""
        self.page.remove_listener("pageerror", self._on_error)
        self.page.remove_listener("console", self._on_console)

    def _on_error(self, error: Any) -> None:
        self.complaints.append(f"error: {error}")

    def _on_console(self, message: Any) -> None:
        if message.type in ("error", "warning") and not self._is_forgiven(message.text):
            self.complaints.append(f"{message.type}: {message.text}")

    def _is_forgiven(self, text: str) -> bool:
        return any(known in text for known in self._forgiven)

    def forgive(self, text: str) -> None:
        """Ignore an expected complaint, which must have occurred; further ones are ignored too."""
        before = len(self.complaints)
        self.overlook(text)
        assert len(self.complaints) < before, f"no complaint about {text!r}"

    def overlook(self, text: str) -> None:
        """Ignore a complaint that may or may not occur."""
        self._forgiven.append(text)
        self.complaints = [line for line in self.complaints if not self._is_forgiven(line)]

    # ---- looking

    def open(self, path: str) -> Page:
        self.page.goto(path)
        self.heading.first.wait_for()
        return self.page

    def open_queue(self, name: str) -> None:
        self.open(f"/console/queues/{name}")
        expect(self.heading).to_contain_text(name)

    @property
    def heading(self) -> Locator:
        return self.page.locator("main h1")

    @property
    def path(self) -> str:
        """The current path with its query."""
        return re.sub(r"^https?://[^/]+", "", self.page.url)

    def figure(self, label: str) -> Locator:
        return self.page.locator(f'[data-figure="{label}"] .value')

    def row(self, key: str) -> Locator:
        return self.page.locator(f'tr[data-key="{key}"]')

    def cell(self, key: str, column: str) -> Locator:
        return self.row(key).locator(f'[data-label="{column}"]')

    def keys(self) -> list[str]:
        """The rows of the tables, in order."""
        rows = self.page.locator("tr[data-key]")
        return [str(row.get_attribute("data-key")) for row in rows.all()]

    def is_too_wide(self) -> bool:
        """Whether the page scrolls sideways."""
        wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        return bool(self.page.evaluate(wide))

    def shoot(self, name: str) -> Path:
        path = self._folder / f"{name}.png"
        self.page.screenshot(path=path, full_page=True)
        return path

    # ---- doing

    def log_in(self, key: str) -> None:
        self.page.get_by_label("API key").fill(key)
        self.page.get_by_role("button", name="Log in").click()

    def ask(self, label: str) -> Dialog:
        """Press the button of an action, which opens its dialog."""
        self.page.locator(f'button[data-action="{label}"]').first.click()
        return self.dialog

    @property
    def dialog(self) -> Dialog:
        return Dialog(self.page.locator("dialog[open]"))

    def expect_toast(self, text: str) -> None:
        """Expect this text in a toast."""
        expect(self.page.locator(".toast", has_text=text).first).to_be_visible()


class Dialog:
    def __init__(self, box: Locator) -> None:
        self.box = box

    def fill(self, label: str, value: str) -> Dialog:
        field = self.box.get_by_label(label, exact=True)
        if field.evaluate("field => field.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.fill(value)
        return self

    def command(self) -> str:
        """The shown command."""
        return self.box.locator('[data-form="Command line"] code').inner_text()

    def call(self) -> str:
        """The shown curl call."""
        return self.box.locator('[data-form="HTTP API"] code').inner_text()

    def expect_count(self, text: str) -> Dialog:
        expect(self.box.locator(".counted")).to_have_text(text)
        return self

    def expect_problem(self, text: str) -> Dialog:
        expect(self.box.locator(".problem")).to_contain_text(text)
        return self

    def confirm(self) -> None:
        """Confirm; the dialog closes."""
        self.box.locator('footer button[type="submit"]').click()
        self.box.wait_for(state="detached")

    def try_to_confirm(self) -> None:
        """Confirm; the dialog stays open if the act is rejected."""
        self.box.locator('footer button[type="submit"]').click()

    def cancel(self) -> None:
        self.box.locator('footer button[type="button"]').click()
        self.box.wait_for(state="detached")
