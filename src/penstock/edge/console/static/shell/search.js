// One search for everything that has a page: Ctrl-K or ⌘K, from anywhere.

import { get, part } from "../server/api.js";
import { openDialog } from "../kit/dialog.js";
import { h, replace } from "../kit/dom.js";
import { session, whyNot } from "../server/session.js";

const PAUSE_MS = 150;
const EACH = 6; // results of one kind
const ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function listenForSearch(pages, go) {
  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey) return;
    event.preventDefault();
    if (!document.querySelector("dialog[open]")) openSearch(pages, go);
  });
}

export function openSearch(pages, go) {
  const input = h("input", {
    type: "search", role: "combobox", "aria-expanded": "true", "aria-controls": "found", "aria-autocomplete": "list",
    "aria-label": "Search", placeholder: "Queue, message id, tag, worker, schedule, page", autocomplete: "off", spellcheck: "false",
  });
  const list = h("ul", { id: "found", class: "found", role: "listbox", "aria-label": "Results" });
  const box = openDialog({ title: "Search", children: [input, list] });
  let results = [];
  let place = 0;
  let timer = 0;
  let asked = 0;

  const open = (result) => {
    if (!result) return;
    box.close();
    go(result.href);
  };
  const show = () => {
    place = Math.max(0, Math.min(place, results.length - 1));
    replace(list, results.length ? results.map((result, n) =>
      h("li", { role: "option", id: `found-${n}`, "aria-selected": String(n === place), onclick: () => open(result) },
        h("span", null, result.text), h("span", { class: "soft" }, result.kind))) : null);
    input.setAttribute("aria-activedescendant", results.length ? `found-${place}` : "");
    list.children[place]?.scrollIntoView({ block: "nearest" });
  };
  const look = async () => {
    const query = (asked += 1);
    const text = input.value.trim();
    results = pagesLike(pages, text);
    place = 0;
    show();
    for await (const more of resultsOf(text)) {
      if (query !== asked) return;
      results = [...more, ...results];
      show();
    }
  };
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE_MS);
  });
  input.addEventListener("keydown", async (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      place = (place + step + results.length) % (results.length || 1);
      show();
    } else if (event.key === "Enter") {
      event.preventDefault();
      const text = input.value.trim();
      if (ID.test(text)) open({ href: `/console/messages/${part(text)}` });
      else open(results[place]);
    }
  });
  input.focus();
  look();
}

function pagesLike(pages, text) {
  const wanted = text.toLowerCase();
  return pages
    .filter((page) => page.nav?.toLowerCase().includes(wanted) && (session().is_aweq_used || !page.path.includes("/aweq/")))
    .map((page) => ({ text: page.nav, kind: "page", href: page.path }));
}

/** The results of each kind, as they arrive; a kind that cannot be read has none. */
async function* resultsOf(text) {
  if (!text || whyNot("read")) return;
  if (ID.test(text)) {
    yield [{ text, kind: "message", href: `/console/messages/${part(text)}` }];
    yield [{ text, kind: "worker", href: `/console/workers/${part(text)}` }];
    yield [{ text, kind: "flow", href: `/console/flows/${part(text)}` }];
    return;
  }
  const wanted = text.toLowerCase();
  const named = (one) => one.name?.toLowerCase().includes(wanted);
  yield await found(get("/v1/recurring", { limit: 1000 }), ({ recurring }) => recurring.filter(named), "schedule", (one) => `/console/recurring/${part(one.name)}`);
  yield await found(get("/v1/workers", { limit: 1000 }), ({ workers }) => workers.filter(named), "worker", (one) => `/console/workers/${part(one.id)}`);
  yield await found(get("/v1/topics", { limit: 1000 }), ({ topics }) => topics.filter(named), "topic", (one) => `/console/topics/${part(one.name)}`);
  yield await found(get("/v1/messages", { tag: text, limit: 1, preview: 1 }), ({ messages }) => messages.slice(0, 1).map(() => ({ name: text })), "tag", () => `/console/messages?tag=${part(text)}`);
  yield await found(get("/v1/queues", { contains: text, limit: EACH }), ({ queues }) => queues, "queue", (one) => `/console/queues/${part(one.name)}`);
}

async function found(asked, listOf, kind, hrefOf) {
  try {
    const list = listOf(await asked).slice(0, EACH);
    return list.map((one) => ({ text: one.name, kind: one.pid ? `${kind} on ${one.host} (${one.pid})` : kind, href: hrefOf(one) }));
  } catch {
    return [];
  }
}
