"""Browser contexts that tests use one after another, emptied in between.

A new context starts a new process of the browser, which loads and compiles all scripts again.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from playwright.sync_api import Browser, Page

PATIENCE_MS = 60_000


class Contexts:
    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._free: defaultdict[str, list[Page]] = defaultdict(list)
        self._options: dict[Page, tuple[str, str, Any]] = {}

    def take(self, *, base_url: str, **options: Any) -> Page:
        """A page of a context without cookies, storage and other pages."""
        key = json.dumps([base_url, options], sort_keys=True)
        if self._free[key]:
            return self._free[key].pop()
        context = self._browser.new_context(base_url=base_url, **options)
        context.set_default_timeout(PATIENCE_MS)
        page = context.new_page()
        self._options[page] = (key, base_url, options["color_scheme"])
        return page

    def give_back(self, page: Page) -> None:
        key, base_url, scheme = self._options[page]
        for other in page.context.pages:
            if other != page:
                other.close()
        # All but the cache, which only holds files that never change.
        cdp = page.context.new_cdp_session(page)
        cdp.send(
            "Storage.clearDataForOrigin",
            {"origin": base_url, "storageTypes": "cookies,local_storage,indexeddb"},
        )
        cdp.detach()
        page.context.clear_cookies()
        page.emulate_media(color_scheme=scheme)
        # Served with the same opener policy as the pages: otherwise the browser changes processes.
        page.goto("/console/session")
        self._free[key].append(page)
