// Selects the page for a path.  Every page has its own URL that can be opened and shared.

import { h, replace } from "../kit/dom.js";

export class Router {
  /**
   * pages: { path: "/console/queues/{queue}", title, show(view) }.
   * A view has: root, params, query, signal (aborted when the page is left), setQuery, onLeave.
   */
  constructor(pages, { root, onShow, onError, missing }) {
    this.pages = pages.map((page) => ({ ...page, fits: pattern(page.path) }));
    this.root = root;
    this.onShow = onShow;
    this.onError = onError;
    this.missing = missing;
    this.leaving = [];
    addEventListener("popstate", () => this.show());
    document.addEventListener("click", (event) => this.followed(event));
  }

  go(url, { replacing = false } = {}) {
    const target = new URL(url, location.href);
    history[replacing ? "replaceState" : "pushState"](null, "", target);
    return this.show();
  }

  async show() {
    for (const leave of this.leaving.splice(0)) leave();
    this.abort?.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    const { page, params } = this.find(location.pathname);
    const view = this.view(params, signal);
    replace(this.root, skeleton());
    if (this.onShow(page, params) === false) return;
    try {
      await page.show(view);
    } catch (error) {
      if (!signal.aborted) this.onError(error, view);
    }
    // The focused element is gone with the previous page: move the focus to the new heading.
    const isLost = document.activeElement === document.body || !document.activeElement;
    if (!signal.aborted && isLost && this.hasShown) this.root.querySelector("h1")?.focus();
    this.hasShown = true;
  }

  find(path) {
    for (const page of this.pages) {
      const found = page.fits.exec(path);
      if (found) return { page, params: unquoted(found.groups ?? {}) };
    }
    return { page: this.missing, params: {} };
  }

  view(params, signal) {
    const query = new URLSearchParams(location.search);
    return {
      root: this.root,
      params,
      query,
      signal,
      onLeave: (leave) => this.leaving.push(leave),
      again: () => this.show(),
      go: (url, options) => this.go(url, options),
      // Changing a filter adds a history entry unless `replacing`; empty values are removed.
      setQuery: (changes, options) => this.go(changed(query, changes), options),
    };
  }

  followed(event) {
    const link = event.target.closest?.("a[href]");
    const isPlain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey);
    if (!link || !isPlain || event.defaultPrevented || link.target || link.hasAttribute("download"))
      return;
    const url = new URL(link.href);
    const isOurs = url.pathname === "/console" || url.pathname.startsWith("/console/");
    if (url.origin !== location.origin || !isOurs) return;
    if (url.hash && url.pathname === location.pathname) return;
    event.preventDefault();
    this.go(url);
  }
}

/** Shown until the page has its data; only after a moment, so that quick pages do not flicker. */
function skeleton() {
  return h("div", { class: "skeleton-page", role: "status" }, h("span", { class: "unseen" }, "Loading…"), [0, 1, 2].map(() => h("i")));
}

export function changed(query, changes) {
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  return text ? `${location.pathname}?${text}` : location.pathname;
}

function pattern(path) {
  const text = path.replace(/[.]/g, "\\.").replace(/\{(\w+)\}/g, "(?<$1>[^/]+)");
  return new RegExp(`^${text}/?$`);
}

function unquoted(groups) {
  return Object.fromEntries(
    Object.entries(groups).map(([name, value]) => {
      try {
        return [name, decodeURIComponent(value)];
      } catch {
        return [name, value];
      }
    }),
  );
}
